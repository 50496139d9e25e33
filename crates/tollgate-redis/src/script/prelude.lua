-- Every number below is a whole number under 2^53, which a Lua number (a double) holds exactly. For such numbers
-- math.floor(a / b) and math.ceil(a / b) are exact too: the nearest double to a / b never crosses an integer.
local LARGEST = 9007199254740991
local LAST_INSTANT = 8000000000000000
-- A key judged at an instant the caller names lives at least this long: the server's clock knows nothing of it.
local VIRTUAL_TIME_FLOOR = 60000
-- A level that never drains (the limit is zero now) is kept this long after each write.
local BLOCKED_TTL = 60000
-- The longest expiry ever set, about 317 years, so that no sum with the server's clock can overflow.
local LONGEST_TTL = 10000000000000

local HIT, PEEK, GIVE_BACK, TAKE, DENY = 0, 1, 2, 3, 4

local call, pcall, pack, unpack = redis.call, redis.pcall, struct.pack, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max
local concat = table.concat

local reply, replied = {}, 0

-- The numbers behind the two bytes (version 1 and the family's letter) of a stored value; nil if it is not one.
local function numbers(value, letter, count)
    if #value ~= 2 + 8 * count or string.byte(value, 1) ~= 1 or string.byte(value, 2) ~= letter then
        return nil
    end
    if count == 2 then
        return unpack('<I8I8', value, 3)
    end
    return unpack('<I8I8I8', value, 3)
end

-- A verdict's first number carries the answer in its sign; one is added because zero has none.
local function signed(allowed, number)
    if allowed then
        return number + 1
    end
    return -number - 1
end

-- Milliseconds that cover `micros`. One more, because the server's expiry clock may be read just before the script's.
local function covering(micros)
    return min(ceil(micros / 1000) + 1, LONGEST_TTL)
end

local function read_value(key, call_with)
    return call_with('GET', key)
end
