-- KEYS: each key once. ARGV[1]: rules, then checks; the Rust side says how they are packed.
-- Reply: the instant, then each check's numbers in order, or one word where a key could not be judged.
--
-- What a call costs shapes this text. Lua makes every function and table of a script anew in each call, and pays again
-- for each name that a function takes from around it. So the common case, hits on keys that the call says nothing else
-- about, is judged here, by little that has to be made; `batches` and `sliding_log` make what others need, and only then.
-- A call of the math library costs as much as ten lines. Each key is read once and written once.
--
-- Every number below is a whole number under 2^53, which a Lua number (a double) holds exactly. For two such numbers the
-- double nearest to a / b lies on the same side of every whole number as a / b itself. So floor(a / b), ceil(a / b) and
-- comparisons of a / b with a whole number are exact too. Only times to live may have a fraction, which is cut off.
local call, pcall, elements = redis.call, redis.pcall, unpack
local pack, unpack, format = struct.pack, struct.unpack, string.format
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local keys, request = KEYS, ARGV[1]

-- A rule is { family, capacity, weight, full, pace, grid }. A cost c fits if it is at most the capacity and the use is
-- at most full - c * weight. Buckets drain `pace` each `grid` microseconds; windows and logs are `pace` microseconds
-- long, and `grid` is one more than the phase of calendar windows, or zero.
local BUCKET, FIXED_WINDOW, SLIDING_WINDOW, COUNTER = 1, 2, 3, 5
-- A run is a hit each on keys side by side, about which the call says nothing else.
local GIVE_BACK, RUN = 2, 5
local LARGEST, LAST_INSTANT = 9007199254740991, 8000000000000000

local at, rule_count, position = unpack('<I8H', request)
-- The server's clock knows nothing of an instant that the caller names.
local now, shortest_ttl = at - 1, 60000
if at == 0 then
    local time = call('TIME')
    now, shortest_ttl = min(time[1] * 1000000 + time[2], LAST_INSTANT), 1
end

local rules = {}
for i = 1, rule_count do
    local rule = { unpack('<BI8I8I8I8I8', request, position) }
    rules[i], position = rule, rule[7]
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
    if ticks >= level / drain then
        return 0
    end
    return level - ticks * drain
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

-- What a state is at an instant under a rule: its three numbers as they would be written, the use that a cost has to
-- fit beside, and whether anything charged still counts.
--   bucket          updated, level, unit
--   fixed window    start, count, 0
--   sliding window  start, count, previous
--   counter         end, count, 0: a fixed window that the server's own INCREX counts in, whose expiry is its end
local function view(rule, now, live, first, second, third)
    local family, period = rule[1], rule[5]
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

-- Milliseconds until nothing of a state counts any more, and at least one more, because the server's clock of expiries
-- may be read just before the script's.
local function time_to_live(rule, now, first, second)
    local family, period, micros = rule[1], rule[5], nil
    if family == BUCKET then
        if period == 0 then
            -- A level that never drains, since the limit is zero now: kept for a while, in case it is raised again.
            return 60000
        end
        micros = (second / period + 1) * rule[6]
    elseif family == FIXED_WINDOW and rule[6] > 0 then
        micros = period - (now + period - rule[6] + 1) % period
    elseif family == FIXED_WINDOW or family == COUNTER then
        micros = first + period - now
    else
        -- A window's count weighs on the next window too.
        micros = first + 2 * period - now
    end
    local ttl = micros / 1000 + 2
    if ttl < shortest_ttl then
        return shortest_ttl
    end
    -- No sum with the server's clock may overflow: 317 years are enough.
    return ttl < 10000000000000 and ttl or 10000000000000
end

-- The string that a command reads: false if there is none, nil if the key holds something else.
local function get(...)
    local value = pcall(...)
    if type(value) ~= 'table' then
        return value
    end
    if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
        -- The same once more, so that the call ends with the server's own error.
        call(...)
    end
end

-- The three numbers of a state, or nothing if the string holds no state of the family.
local function decode(family, value)
    if #value ~= 26 then
        return nil
    end
    local version, letter, first, second, third = unpack('<BBI8I8I8', value)
    if version == 1 and letter == family and first <= LAST_INSTANT and second <= LARGEST and third <= LARGEST
        and (family ~= BUCKET or third > 0) then
        return first, second, third
    end
end

-- Writes a state, or with `only_new` gives false where something lies.
local function save(key, family, first, second, third, ttl, only_new)
    -- The time as text: the server takes longer to write out a number.
    local state, time = pack('<BBI8I8I8', 1, family, first, second, third), format('%d', ttl)
    if only_new then
        return call('SET', key, state, 'PX', time, 'NX')
    end
    return call('SET', key, state, 'PX', time)
end

-- Some other program, a restore or a crash may have taken the expiry away.
local function repair(key, ttl)
    if call('PTTL', key) == -1 then
        call('PEXPIRE', key, format('%d', ttl))
    end
end

-- Adds the numbers of a verdict to the reply; returns how long it is then.
local function answer(reply, replied, family, allowed, live, first, second, third)
    -- The answer is the sign of a verdict's first number; one is added because zero has none.
    reply[replied + 1] = allowed and second + 1 or -second - 1
    if family == BUCKET then
        return replied + 1
    end
    if family == SLIDING_WINDOW then
        reply[replied + 2], reply[replied + 3] = first, third
        return replied + 3
    end
    reply[replied + 2] = live and first or -1
    return replied + 2
end

local reply, replied, others = { now }, 1, nil
local length = #request
while position <= length do
    local op, key, index, count, amount
    op, key, index, count, amount, position = unpack('<BHHHI8', request, position)
    local rule = rules[index]
    if op == RUN then
        local family, cost = rule[1], amount * rule[3]
        local most = amount <= rule[2] and rule[4] - cost or -1
        local values = count > 1 and call('MGET', elements(keys, key, key + count - 1))
        for i = 1, count do
            local name, value = keys[key + i - 1], false
            if values then
                value = values[i]
            else
                value = get('GET', name)
            end
            local stored, trouble, allowed, first, used, live = 0, value == nil and 'type', false, nil, nil, nil
            local second, third = 0, 0
            if value then
                stored, second, third = decode(family, value)
                trouble = not stored and 'value'
            end
            if not trouble then
                first, second, third, used, live = view(rule, now, value, stored, second, third)
                allowed = used <= most
                if allowed then
                    second, live = second + cost, true
                end
                local ttl = time_to_live(rule, now, first, second)
                if not value then
                    -- Where MGET finds nothing there may be something of another type.
                    if allowed and not save(name, family, first, second, third, ttl, true)
                        or not allowed and get('GET', name) == nil then
                        trouble = 'type'
                    end
                elseif allowed or now < stored then
                    save(name, family, first, second, third, ttl)
                else
                    repair(name, ttl)
                end
            end
            if trouble then
                replied = replied + 1
                reply[replied] = trouble
            else
                replied = answer(reply, replied, family, allowed, live, first, second, third)
            end
        end
    else
        local charged_at, mark
        if op % 64 == GIVE_BACK then
            charged_at, mark, position = unpack('<I8I8', request, position)
        end
        others = others or batches({
            keys = keys, reply = reply, now = now, shortest_ttl = shortest_ttl, get = get, decode = decode, view = view,
            drained = drained, time_to_live = time_to_live, save = save, repair = repair, answer = answer,
        })
        replied = others.judge(op, key, rule, count, amount, charged_at, mark, replied)
    end
end
if others then
    others.write()
end

return reply
