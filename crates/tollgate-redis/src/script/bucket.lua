-- The bucket: TokenBucket, LeakyBucket and Gcra. An entry holds { updated, level, unit }.
local function bucket_family()
    local family = {}

    function family.rule(capacity, unit, drain, tick, full)
        return { capacity = capacity, unit = unit, drain = drain, tick = tick, full = full }
    end

    family.read = read_value

    function family.load(entry, value)
        local updated, level, unit = numbers(value, 98, 3)
        if not unit or updated > LAST_INSTANT or level > LARGEST or unit > LARGEST or unit == 0 then
            return false
        end
        entry[1], entry[2], entry[3] = updated, level, unit
        return true
    end

    -- What is left of `level` after draining from one instant to another. The product is only formed where it is
    -- smaller than the level.
    local function drained(rule, level, from, to)
        local drain = rule.drain
        if to <= from or drain == 0 or level == 0 then
            return level
        end
        local tick, ticks = rule.tick, to - from
        if tick > 1 then
            ticks = floor(to / tick) - floor(from / tick)
        end
        if ticks >= ceil(level / drain) then
            return 0
        end
        return level - ticks * drain
    end

    local function level_at(rule, entry, now)
        if not entry.live then
            return 0
        end
        local level = entry[2]
        if entry[3] ~= rule.unit then
            level = min(ceil(level / entry[3]) * rule.unit, LARGEST)
        end
        return drained(rule, level, entry[1], now)
    end

    local function keep(rule, entry, level, now)
        entry[1], entry[2], entry[3] = now, level, rule.unit
        entry.live, entry.dirty = true, true
    end

    local function ttl(rule, level)
        if rule.drain == 0 then
            return BLOCKED_TTL
        end
        return covering(ceil(level / rule.drain) * rule.tick)
    end

    local function fits(rule, level, cost)
        return cost <= rule.capacity and level <= rule.full - cost * rule.unit
    end

    function family.admits(rule, entry, now, cost)
        return fits(rule, level_at(rule, entry, now), cost)
    end

    function family.step(rule, entry, now, op, amount, charged_at, mark)
        local level, allowed = level_at(rule, entry, now), true
        if op <= PEEK or op == DENY then
            allowed = fits(rule, level, amount)
            if op == HIT and allowed then
                level = level + amount * rule.unit
                keep(rule, entry, level, now)
            elseif op ~= PEEK and entry.live and now < entry[1] then
                keep(rule, entry, level, now)
            end
        else
            local settled
            if op == TAKE then
                settled = min(level + amount, LARGEST)
            else
                settled = max(level - min(amount, drained(rule, mark, charged_at, now)), 0)
            end
            if settled ~= level then
                level = settled
                keep(rule, entry, level, now)
            end
        end
        if op ~= PEEK then
            entry.ttl = ttl(rule, level)
        end
        replied = replied + 1
        reply[replied] = signed(allowed, level)
    end

    function family.save(entry, ttl_ms)
        call('SET', entry.key, pack('<BBI8I8I8', 1, 98, entry[1], entry[2], entry[3]), 'PX', ttl_ms)
    end

    return family
end
