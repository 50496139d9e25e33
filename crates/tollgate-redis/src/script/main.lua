-- KEYS: each key once. ARGV[1]: rules, then checks; see the Rust side for the layout.
-- Reply: the instant, then each check's numbers in order, or one word where a key could not be judged.
local request = ARGV[1]
local length = #request
local at, rule_count, position = unpack('<I8H', request)

local now
if at > 0 then
    now = at - 1
else
    local time = call('TIME')
    now = min(time[1] * 1000000 + time[2], LAST_INSTANT)
end
reply[1], replied = now, 1

-- A family's functions are made only if a rule asks for them: a script's functions are made anew in every call.
local makers, families = { bucket_family, fixed_window_family, sliding_window_family, sliding_log_family }, {}
local rules = {}
for i = 1, rule_count do
    local number, a, b, c, d, e
    number, a, b, c, d, e, position = unpack('<BI8I8I8I8I8', request, position)
    local family = families[number]
    if not family then
        family = makers[number]()
        families[number] = family
    end
    local rule = family.rule(a, b, c, d, e)
    rule.family = family
    rules[i] = rule
end

-- The state of each key, read when it is first needed and written once at the end.
local entries = {}
local function entry_of(index, family)
    local entry = entries[index]
    if entry then
        return entry
    end
    local key = KEYS[index]
    entry = { key = key, family = family }
    entries[index] = entry
    local value = family.read(key, pcall)
    if type(value) == 'table' then
        if string.sub(value.err, 1, 9) ~= 'WRONGTYPE' then
            -- The same once more, so that the call ends with the server's own error.
            family.read(key, call)
        end
        entry.trouble = 'type'
    elseif value and value ~= '' then
        if family.load(entry, value) then
            entry.live = true
        else
            entry.trouble = 'value'
        end
    end
    return entry
end

-- The checks of the batch at hand.
local ops, batch_rules, batch_entries, amounts, charged_ats, marks = {}, {}, {}, {}, {}, {}

local function judge(count)
    local trouble, admitted = false, true
    for i = 1, count do
        trouble = trouble or batch_entries[i].trouble
    end
    if trouble then
        for i = 1, count do
            replied = replied + 1
            reply[replied] = batch_entries[i].trouble or 'none'
        end
        return
    end
    if count > 1 then
        for i = 1, count do
            if ops[i] == HIT then
                local rule = batch_rules[i]
                admitted = admitted and rule.family.admits(rule, batch_entries[i], now, amounts[i])
            end
        end
    end
    for i = 1, count do
        local op, rule = ops[i], batch_rules[i]
        if op == HIT and not admitted then
            op = DENY
        end
        rule.family.step(rule, batch_entries[i], now, op, amounts[i], charged_ats[i], marks[i])
    end
end

local count = 0
while position <= length do
    local key, rule, op
    count = count + 1
    op, key, rule, amounts[count], position = unpack('<BHHI8', request, position)
    local last = op >= 128
    if last then
        op = op - 128
    end
    if op == GIVE_BACK then
        charged_ats[count], marks[count], position = unpack('<I8I8', request, position)
    end
    rule = rules[rule]
    ops[count], batch_rules[count], batch_entries[count] = op, rule, entry_of(key, rule.family)
    if last then
        judge(count)
        count = 0
    end
end

for _, entry in pairs(entries) do
    local ttl = entry.ttl
    if ttl then
        if at > 0 then
            ttl = max(ttl, VIRTUAL_TIME_FLOOR)
        end
        if entry.dirty then
            entry.family.save(entry, ttl)
        elseif entry.live and call('PTTL', entry.key) == -1 then
            call('PEXPIRE', entry.key, ttl)
        end
    end
end

return reply
