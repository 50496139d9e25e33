-- What batches of several checks, peeks, settlements, logs and keys with more than one check need, made only for them.
local function batches(shared)
    local call, floor, min, max = redis.call, math.floor, math.min, math.max
    local keys, reply, get, decode, view = shared.keys, shared.reply, shared.get, shared.decode, shared.view
    local drained, time_to_live, answer = shared.drained, shared.time_to_live, shared.answer
    local precise, shortest_ttl = shared.now, shared.shortest_ttl
    local BUCKET, SLIDING_LOG, COUNTER = 1, 4, 5
    -- DENY is what becomes of a hit in a batch with another that is denied.
    local HIT, PEEK, GIVE_BACK, TAKE, DENY = 0, 1, 2, 3, 4
    local LARGEST = 9007199254740991
    -- What the call knows of each key: { first, second, third, ... }, the three numbers of its state.
    local entries = {}
    -- The checks of the batch at hand, and what they see.
    local checks, count, admitted, trouble = {}, 0, true, false
    -- The instant that the batch at hand is judged at.
    local now, log = precise, nil

    local function read(key, family)
        local entry = { 0, 0, 0, key = key, family = family, live = false, dirty = false, ttl = false, trouble = false }
        local value
        if family == SLIDING_LOG then
            value = get('GETRANGE', key, 0, log.READ - 1)
            -- GETRANGE answers with an empty string where there is no key, too.
            if value == '' then
                value = false
            end
        else
            value = get('GET', key)
        end
        if value == nil then
            entry.trouble = 'type'
        elseif value and family == SLIDING_LOG then
            entry.live = log.load(entry, value)
            entry.trouble = not entry.live and 'value'
        elseif value and family == COUNTER then
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
        elseif value then
            local first, second, third = decode(family, value)
            if first then
                entry[1], entry[2], entry[3], entry.live = first, second, third, true
            else
                entry.trouble = 'value'
            end
        end
        return entry
    end

    -- Carries out one operation and replies; returns how long the reply is then. Of a hit that is asked `times` times, the
    -- reply holds the first, and how many fit: all others follow from these.
    local function apply(
        rule, entry, op, amount, times, charged_at, mark, allowed, first, second, third, used, live, replied
    )
        local family, weight, before = rule[1], rule[3], second
        local cost = amount * weight
        if op == HIT and allowed then
            second, live = second + cost, true
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
        replied = answer(reply, replied, family, allowed, live, first, second, third)
        if times > 1 and op == HIT then
            local fit = allowed and min(times, floor((rule[4] - used) / cost)) or 0
            second = second + max(fit - 1, 0) * cost
            replied = replied + 1
            reply[replied] = fit
        end
        if op == PEEK then
            return replied
        end
        if family == COUNTER then
            entry.dirty = entry.dirty or second ~= before or entry.live and not entry[1]
            entry[1], entry[2], entry.live = first + rule[5], second, live
        elseif second ~= before or (op == HIT or op == DENY) and entry.live and now < entry[1] then
            entry[1], entry[2], entry[3] = first, second, third
            entry.live, entry.dirty = true, true
        end
        entry.ttl = time_to_live(rule, now, first, second)
        return replied
    end

    -- Judges the next check of a batch; with the last one, the batch is carried out. Returns how long the reply is then.
    local function judge(op, key, rule, times, amount, charged_at, mark, replied)
        local last, family, allowed = op >= 128, rule[1], true
        if last then
            op = op - 128
        end
        now = precise
        if op >= 64 then
            -- Counters live by the millisecond, and a batch has one clock.
            op, now = op - 64, precise - precise % 1000
        end
        if family == SLIDING_LOG then
            log = log or sliding_log(shortest_ttl)
        end
        if log then
            log.judge_at(now)
        end
        local entry = entries[key]
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
                first, second, third, used, live = view(rule, now, entry.live, entry[1], entry[2], entry[3])
            end
            if op <= PEEK then
                allowed = amount <= rule[2] and used <= rule[4] - amount * rule[3]
                admitted = admitted and (allowed or op == PEEK)
            end
        end
        count = count + 1
        if last and count == 1 and not trouble then
            if family == SLIDING_LOG then
                replied = log.apply(rule, entry, op, amount, charged_at, reply, replied)
            else
                replied = apply(rule, entry, op, amount, times, charged_at, mark, allowed,
                    first, second, third, used, live, replied)
            end
        else
            checks[count] = { rule, entry, op, amount, charged_at, mark, allowed, first, second, third, used, live }
            for i = 1, last and count or 0 do
                local check = checks[i]
                rule, entry, op = check[1], check[2], check[3]
                if op == HIT and not admitted then
                    op = DENY
                end
                if trouble then
                    replied = replied + 1
                    reply[replied] = entry.trouble or 'none'
                elseif rule[1] == SLIDING_LOG then
                    replied = log.apply(rule, entry, op, check[4], check[5], reply, replied)
                else
                    replied = apply(rule, entry, op, check[4], 1, check[5], check[6], check[7],
                        check[8], check[9], check[10], check[11], check[12], replied)
                end
            end
        end
        if last then
            count, admitted, trouble = 0, true, false
        end
        return replied
    end

    local function write()
        for _, entry in pairs(entries) do
            local ttl = entry.ttl
            if ttl and not entry.dirty then
                if entry.live then
                    shared.repair(entry.key, ttl)
                end
            elseif ttl and entry.family == SLIDING_LOG then
                log.save(entry, ttl)
            elseif ttl and entry.family == COUNTER then
                call('SET', entry.key, string.format('%.0f', entry[2]), 'PXAT', entry[1] / 1000 - 1)
            elseif ttl then
                shared.save(entry.key, entry.family, entry[1], entry[2], entry[3], ttl)
            end
        end
    end

    return { judge = judge, write = write }
end

