-- The sliding window counter. An entry holds { start, count, previous }.
local function sliding_window_family()
    local family = {}

    function family.rule(limit, period)
        return { limit = limit, period = period }
    end

    family.read = read_value

    function family.load(entry, value)
        local start, count, previous = numbers(value, 119, 3)
        if not previous or start > LAST_INSTANT or count > LARGEST or previous > LARGEST then
            return false
        end
        entry[1], entry[2], entry[3] = start, count, previous
        return true
    end

    -- floor(number * part / whole) for a part that is at most the whole, and a whole below 2^45.
    --
    -- Where the product passes 2^53 it is formed seven bits at a time, as in long division: the remainder stays below
    -- 2^45, so remainder * 128 and digit * part both stay below 2^52.
    local function share(number, part, whole)
        local product = number * part
        if product <= LARGEST then
            return floor(product / whole)
        end
        local quotient, remainder, weight = 0, 0, 562949953421312
        for _ = 1, 8 do
            local digit = floor(number / weight)
            number = number - digit * weight
            weight = weight / 128
            local dividend = remainder * 128 + digit * part
            local times = floor(dividend / whole)
            remainder = dividend - times * whole
            quotient = quotient * 128 + times
        end
        return quotient
    end

    local function estimate(rule, start, count, previous, now)
        local left = max(rule.period - max(now - start, 0), 0)
        return share(previous, left, rule.period) + count
    end

    -- The windows around `now`, and what they add up to.
    local function windows(rule, entry, now)
        if not entry.live then
            return now, 0, 0, 0
        end
        local period, start, count, previous = rule.period, entry[1], entry[2], entry[3]
        if now < start then
            start = now
        else
            local gone = now - start
            if gone >= 2 * period then
                return now, 0, 0, 0
            end
            if gone >= period then
                start, count, previous = min(start + period, LAST_INSTANT), 0, count
            end
        end
        local used = estimate(rule, start, count, previous, now)
        if used == 0 then
            return now, 0, 0, 0
        end
        return start, count, previous, used
    end

    local function fits(rule, used, cost)
        return cost <= rule.limit and used <= rule.limit - cost
    end

    local function keep(entry, start, count, previous)
        entry[1], entry[2], entry[3] = start, count, previous
        entry.live, entry.dirty = true, true
    end

    function family.admits(rule, entry, now, cost)
        local _, _, _, used = windows(rule, entry, now)
        return fits(rule, used, cost)
    end

    function family.step(rule, entry, now, op, amount, charged_at)
        local start, count, previous, used = windows(rule, entry, now)
        local allowed = true
        if op <= PEEK or op == DENY then
            allowed = fits(rule, used, amount)
            if op == HIT and allowed then
                count = count + amount
                keep(entry, start, count, previous)
            elseif op ~= PEEK and entry.live and now < entry[1] then
                keep(entry, start, count, previous)
            end
        else
            local settled = count
            if op == TAKE then
                settled = min(count + amount, LARGEST)
            elseif charged_at >= start then
                settled = max(count - amount, 0)
            end
            if settled ~= count then
                count = settled
                keep(entry, start, count, previous)
            end
        end
        if op ~= PEEK then
            -- The window's count weighs on the next window too.
            entry.ttl = covering(start + 2 * rule.period - now)
        end
        reply[replied + 1] = signed(allowed, count)
        reply[replied + 2] = start
        reply[replied + 3] = previous
        replied = replied + 3
    end

    function family.save(entry, ttl_ms)
        call('SET', entry.key, pack('<BBI8I8I8', 1, 119, entry[1], entry[2], entry[3]), 'PX', ttl_ms)
    end

    return family
end
