-- KEYS: each key once. ARGV[1]: rules, then checks; the Rust side says how they are packed.
-- Reply: the instant, then each check's numbers in order, or one word where a key could not be judged.
--
-- What a call costs shapes this text. Lua makes every function and table of a script anew in each call, so there are
-- few of them, and what only a sliding log needs is made only for one. Each key is read once and written once.
--
-- Every number below is a whole number under 2^53, which a Lua number (a double) holds exactly. For such numbers
-- floor(a / b) and ceil(a / b) are exact too: the nearest double to a / b never lies across an integer from it.
local call, pcall, unpack = redis.call, redis.pcall, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local keys, request = KEYS, ARGV[1]

-- A rule is { family, capacity, weight, full, pace, grid }. A cost c fits if it is at most the capacity and the use is
-- at most full - c * weight. Buckets drain `pace` each `grid` microseconds; windows and logs are `pace` microseconds
-- long, and `grid` is one more than the phase of calendar windows, or zero.
local BUCKET, FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG, COUNTER = 1, 2, 3, 4, 5
-- DENY is what becomes of a hit in a batch with another that is denied.
local HIT, PEEK, GIVE_BACK, TAKE, DENY = 0, 1, 2, 3, 4
local LARGEST, LAST_INSTANT = 9007199254740991, 8000000000000000

local at, rule_count, position = unpack('<I8H', request)
local precise = at - 1
if at == 0 then
    local time = call('TIME')
    precise = min(time[1] * 1000000 + time[2], LAST_INSTANT)
end
-- The instant that the batch at hand is judged at.
local now = precise

local rules, log, entries = {}, nil, {}
for i = 1, rule_count do
    local rule = { unpack('<BI8I8I8I8I8', request, position) }
    rules[i], position = rule, rule[7]
    if rule[1] == SLIDING_LOG then
        log = log or sliding_log()
    end
end

-- What is left of a bucket's level after draining from one instant to another. The product is only formed where it is
-- smaller than the level.
local function drained(rule, level, from, to)
    local drain, tick = rule[5], rule[6]
    if to <= from or drain == 0 or level == 0 then
        return level
    end
    local ticks = to - from
    if tick > 1 then
        ticks = floor(to / tick) - floor(from / tick)
    end
    if ticks >= ceil(level / drain) then
        return 0
    end
    return level - ticks * drain
end

-- An entry is what the call knows of a key: { first, second, third, ... }, the three numbers of its state.
--   bucket          updated, level, unit
--   fixed window    start, count, 0
--   sliding window  start, count, previous
--   counter         end, count, 0: a fixed window that the server's own INCREX counts in, whose expiry is its end
local function read(key, family)
    local entry = { 0, 0, 0, key = key, family = family, live = false, dirty = false, ttl = false, trouble = false }
    local value
    if family == SLIDING_LOG then
        value = log.read(key, pcall)
    else
        value = pcall('GET', key)
    end
    if not value or value == '' then
        return entry
    end
    if type(value) == 'table' then
        if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
            -- The same once more, so that the call ends with the server's own error.
            call('GET', key)
        end
        entry.trouble = 'type'
    elseif family == SLIDING_LOG then
        entry.live = log.load(entry, value)
        entry.trouble = not entry.live and 'value'
    elseif family == COUNTER then
        local number, expiry = tonumber(value), call('PEXPIRETIME', key)
        if string.find(value, '^%d+$') and number <= LARGEST then
            -- The key is gone from the millisecond after its expiry on.
            entry[1], entry[2], entry.live = (expiry + 1) * 1000, number, true
            if expiry < 0 then
                -- A counter that would never end: a window that begins now.
                entry[1] = false
            end
        else
            entry.trouble = 'value'
        end
    else
        local version, letter, first, second, third
        if #value == 26 then
            version, letter, first, second, third = unpack('<BBI8I8I8', value)
        end
        if version == 1 and letter == family and first <= LAST_INSTANT and second <= LARGEST and third <= LARGEST
            and (family ~= BUCKET or third > 0) then
            entry[1], entry[2], entry[3], entry.live = first, second, third, true
        else
            entry.trouble = 'value'
        end
    end
    return entry
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

-- What an entry is at `now` under a rule: the three numbers of the state as they would be written, the use that a
-- cost has to fit beside, and whether anything charged still counts.
local function view(rule, entry)
    local family, live, period = rule[1], entry.live, rule[5]
    local first, second, third = entry[1], entry[2], entry[3]
    if family == BUCKET then
        local unit = rule[3]
        if not live then
            return now, 0, unit, 0, false
        end
        if third ~= unit then
            second = min(ceil(second / third) * unit, LARGEST)
        end
        second = drained(rule, second, first, now)
        return now, second, unit, second, true
    end
    if family == COUNTER then
        if live and first then
            return first - period, second, 0, second, true
        end
        return now, second, 0, second, live
    end
    if family == FIXED_WINDOW then
        if rule[6] > 0 then
            local start = max(now - (now + period - rule[6] + 1) % period, 0)
            live = live and first >= start
            first = start
        elseif live and now < first then
            first = now
        elseif not live or now - first >= period then
            live, first = false, now
        end
        if not live then
            second = 0
        end
        return first, second, 0, second, live
    end
    local gone = now - first
    if live and gone < 2 * period then
        if gone < 0 then
            first = now
        elseif gone >= period then
            first, second, third = min(first + period, LAST_INSTANT), 0, second
        end
        local used = share(third, max(period - max(now - first, 0), 0), period) + second
        if used > 0 then
            return first, second, third, used, true
        end
    end
    return now, 0, 0, 0, false
end

-- Milliseconds until nothing of an entry counts any more, rounded up. One more, because the server's clock of
-- expiries may be read just before the script's.
local function time_to_live(rule, first, second)
    local family, period = rule[1], rule[5]
    local micros
    if family == BUCKET then
        if period == 0 then
            -- A level that never drains, since the limit is zero now: kept for a while, in case it is raised again.
            return 60000
        end
        micros = ceil(second / period) * rule[6]
    elseif family == FIXED_WINDOW and rule[6] > 0 then
        micros = period - (now + period - rule[6] + 1) % period
    elseif family == FIXED_WINDOW or family == COUNTER then
        micros = max(first + period - now, 0)
    else
        -- A window's count weighs on the next window too.
        micros = first + 2 * period - now
    end
    -- No sum with the server's clock may overflow: 317 years are enough.
    return min(ceil(micros / 1000) + 1, 10000000000000)
end

local reply, replied = { precise }, 1

-- Carries out one operation, `times` times, and replies. `allowed` is for the first time.
local function apply(rule, entry, op, amount, times, charged_at, mark, allowed, first, second, third, used, live)
    local family, weight, before = rule[1], rule[3], second
    local cost = amount * weight
    repeat
        if op == HIT and allowed then
            second, used, live = second + cost, used + cost, true
        elseif op == TAKE then
            second = min(second + amount, LARGEST)
        elseif op == GIVE_BACK then
            if family == BUCKET then
                second = max(second - min(amount, drained(rule, mark, charged_at, now)), 0)
            elseif charged_at >= first then
                second = max(second - amount, 0)
            end
        end
        live = live or second > 0
        -- The answer is the sign of a verdict's first number; one is added because zero has none.
        reply[replied + 1] = allowed and second + 1 or -second - 1
        if family == BUCKET then
            replied = replied + 1
        elseif family == FIXED_WINDOW or family == COUNTER then
            reply[replied + 2] = live and first or -1
            replied = replied + 2
        else
            reply[replied + 2], reply[replied + 3] = first, third
            replied = replied + 3
        end
        times = times - 1
        if op == HIT then
            allowed = amount <= rule[2] and used <= rule[4] - cost
        end
    until times == 0
    if op == PEEK then
        return
    end
    if family == COUNTER then
        entry.dirty = entry.dirty or second ~= before or entry.live and not entry[1]
        entry[1], entry[2], entry.live = first + rule[5], second, live
    elseif second ~= before or (op == HIT or op == DENY) and entry.live and now < entry[1] then
        entry[1], entry[2], entry[3] = first, second, third
        entry.live, entry.dirty = true, true
    end
    entry.ttl = time_to_live(rule, first, second)
end

-- The checks of the batch at hand, and what they see.
local checks, count, admitted, trouble = {}, 0, true, false
local length = #request
while position <= length do
    local op, key, index, times, amount, charged_at, mark
    op, key, index, times, amount, position = unpack('<BHHHI8', request, position)
    local last = op >= 128
    if last then
        op = op - 128
    end
    now = precise
    if op >= 64 then
        -- Counters live by the millisecond, and a batch has one clock.
        op, now = op - 64, precise - precise % 1000
    end
    if log then
        log.judge_at(now)
    end
    if op == GIVE_BACK then
        charged_at, mark, position = unpack('<I8I8', request, position)
    end
    local rule, entry = rules[index], entries[key]
    local family, allowed = rule[1], true
    if not entry then
        entry = read(keys[key], family)
        entries[key] = entry
    end
    local first, second, third, used, live
    if entry.trouble then
        trouble = true
    else
        if family == SLIDING_LOG then
            used = log.used(rule, entry)
        else
            first, second, third, used, live = view(rule, entry)
        end
        if op <= PEEK then
            allowed = amount <= rule[2] and used <= rule[4] - amount * rule[3]
            admitted = admitted and (allowed or op == PEEK)
        end
    end
    count = count + 1
    if last and count == 1 and not trouble then
        if family == SLIDING_LOG then
            replied = log.apply(rule, entry, op, amount, times, charged_at, reply, replied)
        else
            apply(rule, entry, op, amount, times, charged_at, mark, allowed, first, second, third, used, live)
        end
    else
        checks[count] = { rule, entry, op, amount, charged_at, mark, allowed, first, second, third, used, live, times }
        for i = 1, last and count or 0 do
            local check = checks[i]
            rule, entry, op = check[1], check[2], check[3]
            if op == HIT and not admitted then
                op = DENY
            end
            if trouble then
                for _ = 1, check[13] do
                    replied = replied + 1
                    reply[replied] = entry.trouble or 'none'
                end
            elseif rule[1] == SLIDING_LOG then
                replied = log.apply(rule, entry, op, check[4], 1, check[5], reply, replied)
            else
                apply(rule, entry, op, check[4], 1, check[5], check[6], check[7],
                    check[8], check[9], check[10], check[11], check[12])
            end
        end
    end
    if last then
        count, admitted, trouble = 0, true, false
    end
end

for _, entry in pairs(entries) do
    local ttl = entry.ttl
    if ttl then
        if at > 0 then
            -- The server's clock knows nothing of an instant that the caller names.
            ttl = max(ttl, 60000)
        end
        if not entry.dirty then
            -- Some other program, a restore or a crash may have taken the expiry away.
            if entry.live and call('PTTL', entry.key) == -1 then
                call('PEXPIRE', entry.key, ttl)
            end
        elseif entry.family == SLIDING_LOG then
            log.save(entry, ttl)
        elseif entry.family == COUNTER then
            call('SET', entry.key, string.format('%.0f', entry[2]), 'PXAT', entry[1] / 1000 - 1)
        else
            local value = struct.pack('<BBI8I8I8', 1, entry.family, entry[1], entry[2], entry[3])
            call('SET', entry.key, value, 'PX', ttl)
        end
    end
end

return reply
