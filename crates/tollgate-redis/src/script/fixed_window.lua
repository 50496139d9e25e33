-- The fixed window. An entry holds { start, count }.
local function fixed_window_family()
    local family = {}

    -- `phase` is one more than where calendar windows begin in a period, or zero for windows that begin at a hit.
    function family.rule(limit, period, phase)
        return { limit = limit, period = period, phase = phase - 1 }
    end

    family.read = read_value

    function family.load(entry, value)
        local start, count = numbers(value, 102, 2)
        if not count or start > LAST_INSTANT or count > LARGEST then
            return false
        end
        entry[1], entry[2] = start, count
        return true
    end

    local function since_boundary(rule, now)
        return (now + rule.period - rule.phase) % rule.period
    end

    -- When the window around `now` began, what was charged in it, and whether the entry is that window.
    local function window(rule, entry, now)
        local calendar, start = rule.phase >= 0, now
        if calendar then
            start = max(now - since_boundary(rule, now), 0)
        end
        if not entry.live then
            return start, 0, false
        end
        if calendar then
            if entry[1] >= start then
                return start, entry[2], true
            end
        elseif now < entry[1] then
            return start, entry[2], true
        elseif now - entry[1] < rule.period then
            return entry[1], entry[2], true
        end
        return start, 0, false
    end

    local function fits(rule, count, cost)
        return count <= rule.limit and cost <= rule.limit - count
    end

    local function keep(entry, start, count)
        entry[1], entry[2] = start, count
        entry.live, entry.dirty = true, true
    end

    function family.admits(rule, entry, now, cost)
        local _, count = window(rule, entry, now)
        return fits(rule, count, cost)
    end

    function family.step(rule, entry, now, op, amount, charged_at)
        local start, count, live = window(rule, entry, now)
        local allowed = true
        if op <= PEEK or op == DENY then
            allowed = fits(rule, count, amount)
            if op == HIT and allowed then
                count, live = count + amount, true
                keep(entry, start, count)
            elseif op ~= PEEK and entry.live and now < entry[1] then
                keep(entry, start, count)
            end
        else
            local settled = count
            if op == TAKE then
                settled = min(count + amount, LARGEST)
            elseif charged_at >= start then
                settled = max(count - amount, 0)
            end
            if settled ~= count then
                count, live = settled, true
                keep(entry, start, count)
            end
        end
        if op ~= PEEK then
            if rule.phase >= 0 then
                entry.ttl = covering(rule.period - since_boundary(rule, now))
            else
                entry.ttl = covering(max(start + rule.period - now, 0))
            end
        end
        reply[replied + 1] = signed(allowed, live and count or 0)
        reply[replied + 2] = live and start or -1
        replied = replied + 2
    end

    function family.save(entry, ttl_ms)
        call('SET', entry.key, pack('<BBI8I8', 1, 102, entry[1], entry[2]), 'PX', ttl_ms)
    end

    return family
end
