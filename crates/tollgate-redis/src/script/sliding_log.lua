-- What a sliding log needs, made only in calls that judge one.
--
-- A log is one string that is used as an array, so that any entry is read or written without the others.
--
-- value   = 1, 4, size, head, base | entry 0 | entry 1 | ...
-- entry i = the instant of a hit, and the running total of units up to and including it, modulo 2^53
-- Entries before `head` are gone; `base` is the running total before entry `head`. Bytes after entry `size - 1` are
-- leftovers. An entry of this script holds the fields of the header, the bytes it has read, and from `fresh` on the
-- instants and totals that are not stored yet.
local function sliding_log(shortest_ttl)
    local call, pack, unpack = redis.call, struct.pack, struct.unpack
    local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
    local HIT, PEEK, TAKE, DENY = 0, 1, 3, 4
    local HEADER, WIDTH, LARGEST, MODULUS = 26, 16, 9007199254740991, 9007199254740992
    -- A log of up to this many entries is read and written whole: two commands, whatever changed.
    local WHOLE = 256
    -- What is read of a log at first.
    local READ = HEADER + WHOLE * WIDTH
    local log, now = { READ = READ }, 0

    function log.judge_at(instant)
        now = instant
    end

    function log.load(entry, value)
        if #value < HEADER then
            return false
        end
        local version, family, size, head, base = unpack('<BBI8I8I8', value)
        if version ~= 1 or family ~= 4 or head > size or size > LARGEST or base > LARGEST then
            return false
        end
        local stored = HEADER + size * WIDTH
        entry.whole = stored <= READ
        if entry.whole and #value < stored or not entry.whole and call('STRLEN', entry.key) < stored then
            return false
        end
        entry.data, entry.size, entry.head, entry.base = value, size, head, base
        entry.fresh, entry.instants, entry.totals = size, {}, {}
        return true
    end

    local function begin(entry)
        entry.whole, entry.data, entry.size, entry.head, entry.base = true, '', 0, 0, 0
        entry.fresh, entry.instants, entry.totals = 0, {}, {}
    end

    local function plus(a, b)
        if a >= MODULUS - b then
            return a - (MODULUS - b)
        end
        return a + b
    end

    local function minus(a, b)
        if a < b then
            return MODULUS - (b - a)
        end
        return a - b
    end

    -- The instant and the running total of entry `i`.
    local function at(entry, i)
        if i >= entry.fresh then
            local j = i - entry.fresh + 1
            return entry.instants[j], entry.totals[j]
        end
        local first = HEADER + i * WIDTH
        if first + WIDTH <= #entry.data then
            return unpack('<I8I8', entry.data, first + 1)
        end
        return unpack('<I8I8', call('GETRANGE', entry.key, first, first + WIDTH - 1))
    end

    local function total_before(entry, i)
        if i == entry.head then
            return entry.base
        end
        local _, total = at(entry, i - 1)
        return total
    end

    local function newest(entry)
        if entry.live and entry.size > entry.head then
            local instant = at(entry, entry.size - 1)
            return instant
        end
        return nil
    end

    -- The first entry from `low` on of which `before` does not hold; what is sought is mostly near the front.
    local function first_not(entry, low, before)
        local step, high = 1, low
        while high < entry.size and before(at(entry, high)) do
            low = high + 1
            high, step = high + step, step * 2
        end
        high = min(high, entry.size)
        while low < high do
            local middle = floor((low + high) / 2)
            if before(at(entry, middle)) then
                low = middle + 1
            else
                high = middle
            end
        end
        return low
    end

    -- Makes every entry from `i` on one that is not stored yet, so that it may change.
    local function loosen(entry, i)
        if i >= entry.fresh then
            return
        end
        local first, last = HEADER + i * WIDTH, HEADER + entry.fresh * WIDTH
        local bytes
        if last <= #entry.data then
            bytes = string.sub(entry.data, first + 1, last)
        else
            bytes = call('GETRANGE', entry.key, first, last - 1)
        end
        local instants, totals, position, j = {}, {}, 1, 0
        while position < #bytes do
            j = j + 1
            instants[j], totals[j], position = unpack('<I8I8', bytes, position)
        end
        for k = 1, #entry.instants do
            instants[j + k], totals[j + k] = entry.instants[k], entry.totals[k]
        end
        entry.fresh, entry.instants, entry.totals = i, instants, totals
    end

    local function truncate(entry, size)
        entry.size = size
        if size <= entry.fresh then
            entry.fresh, entry.instants, entry.totals = size, {}, {}
            return
        end
        for j = #entry.instants, size - entry.fresh + 1, -1 do
            entry.instants[j], entry.totals[j] = nil, nil
        end
    end

    -- Sets the running total at `instant`, which is not before the newest entry.
    local function put(entry, instant, total)
        if newest(entry) == instant then
            loosen(entry, entry.size - 1)
            entry.totals[#entry.totals] = total
        else
            local j = entry.size - entry.fresh + 1
            entry.instants[j], entry.totals[j] = instant, total
            entry.size = entry.size + 1
        end
        entry.dirty = true
    end

    local function expired(rule, entry)
        local deadline = now - rule[5]
        return first_not(entry, entry.head, function(instant)
            return instant <= deadline
        end)
    end

    local function used(rule, entry)
        if not entry.live then
            return 0
        end
        return minus(total_before(entry, entry.size), total_before(entry, expired(rule, entry)))
    end

    -- Moves what lies in the future to `now`, and drops what has expired.
    local function advance(rule, entry)
        if not entry.live then
            return
        end
        local latest = newest(entry)
        if latest and now < latest then
            local kept = first_not(entry, entry.head, function(instant)
                return instant <= now
            end)
            local total = total_before(entry, entry.size)
            truncate(entry, kept)
            put(entry, now, total)
        end
        local gone = expired(rule, entry)
        if gone > entry.head then
            entry.base, entry.head, entry.dirty = total_before(entry, gone), gone, true
        end
    end

    local function push(entry, units)
        if not entry.live then
            begin(entry)
            entry.live = true
        end
        put(entry, now, plus(total_before(entry, entry.size), units))
    end

    local function give_back(entry, charged_at, units)
        if not entry.live or units == 0 then
            return
        end
        local i = first_not(entry, entry.head, function(instant)
            return instant < charged_at
        end)
        if i == entry.size or at(entry, i) ~= charged_at then
            return
        end
        local before = total_before(entry, i)
        loosen(entry, i)
        local totals, instants = entry.totals, entry.instants
        local j = i - entry.fresh + 1
        local back = min(units, minus(totals[j], before))
        for k = j, #totals do
            totals[k] = minus(totals[k], back)
        end
        if totals[j] == before then
            table.remove(totals, j)
            table.remove(instants, j)
            entry.size = entry.size - 1
        end
        entry.dirty = true
    end

    -- When a denied hit fits. An entry from the future counts as made now, which is what the next hit makes of it.
    local function retry_at(rule, entry, cost, units)
        if not entry.live then
            return 0
        end
        local excess = units - (rule[2] - cost)
        local gone = expired(rule, entry)
        local before = total_before(entry, gone)
        local freeing = first_not(entry, gone, function(_, total)
            return minus(total, before) < excess
        end)
        if freeing >= entry.size then
            return 0
        end
        return min((at(entry, freeing)), now) + rule[5]
    end

    log.used = used

    -- Carries out one operation and replies; returns how long the reply is then.
    function log.apply(rule, entry, op, amount, charged_at, reply, replied)
        local allowed = true
        local units = used(rule, entry)
        if op <= PEEK or op == DENY then
            allowed = amount <= rule[2] and units <= rule[2] - amount
            local latest = newest(entry)
            if op == HIT and allowed then
                advance(rule, entry)
                push(entry, amount)
            elseif op ~= PEEK and latest and now < latest then
                advance(rule, entry)
            end
        elseif op == TAKE then
            local extra = min(amount, LARGEST - units)
            if extra > 0 then
                advance(rule, entry)
                push(entry, extra)
            end
        else
            give_back(entry, charged_at, amount)
        end
        units = used(rule, entry)
        local latest, reset_at, retry = newest(entry), now, 0
        if latest then
            reset_at = max(min(latest, now) + rule[5], now)
        end
        if not allowed and amount <= rule[2] then
            retry = retry_at(rule, entry, amount, units)
        end
        if op ~= PEEK then
            entry.ttl = max(ceil((reset_at - now) / 1000) + 1, shortest_ttl)
        end
        reply[replied + 1] = allowed and units + 1 or -units - 1
        reply[replied + 2], reply[replied + 3] = retry, reset_at
        return replied + 3
    end

    local function packed(entry)
        local parts, instants, totals = {}, entry.instants, entry.totals
        for j = 1, #instants do
            parts[j] = pack('<I8I8', instants[j], totals[j])
        end
        return table.concat(parts)
    end

    function log.save(entry, ttl_ms)
        local size, head, base = entry.size, entry.head, entry.base
        if size == head then
            return call('UNLINK', entry.key)
        end
        local stored = max(entry.fresh, head)
        local first, last = HEADER + head * WIDTH, HEADER + stored * WIDTH
        if not entry.whole and head * 2 < size then
            -- Most of a long log stays as it is.
            call('SETRANGE', entry.key, 0, pack('<BBI8I8I8', 1, 4, size, head, base))
            if size > entry.fresh then
                call('SETRANGE', entry.key, HEADER + entry.fresh * WIDTH, packed(entry))
            end
            return call('PEXPIRE', entry.key, ttl_ms)
        end
        local kept = ''
        if stored > head then
            if entry.whole then
                kept = string.sub(entry.data, first + 1, last)
            else
                kept = call('GETRANGE', entry.key, first, last - 1)
            end
        end
        local fresh = packed(entry)
        if entry.fresh < head then
            fresh = string.sub(fresh, (head - entry.fresh) * WIDTH + 1)
        end
        call('SET', entry.key, pack('<BBI8I8I8', 1, 4, size - head, 0, base) .. kept .. fresh, 'PX', ttl_ms)
    end

    return log
end
