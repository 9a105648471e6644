package redis

import goredis "github.com/redis/go-redis/v9"

// Every script touches the one key that it is given, so it runs in a Cluster.
// Times are the caller's: a field ends when its author's clock says so.

// addScript: delta, ttl in ms. Answers the sum as text, because a Lua number
// has 53 bits. A counter without an end is another's and gets one.
var addScript = goredis.NewScript(`
redis.call('INCRBY', KEYS[1], ARGV[1])
if redis.call('PTTL', KEYS[1]) < 0 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return redis.call('GET', KEYS[1])
`)

// pushScript: "LEN:SLOT", value, size, ttl in ms, largest element. Answers the
// ring without elements that are too large.
var pushScript = goredis.NewScript(`
local key, slot, size = KEYS[1], ARGV[1], tonumber(ARGV[3])
if redis.call('LLEN', key) > 1024 then redis.call('LTRIM', key, -size, -1) end
local found = false
for i, e in ipairs(redis.call('LRANGE', key, 0, -1)) do
  if string.sub(e, 1, #slot) == slot then
    redis.call('LSET', key, i - 1, slot .. ARGV[2])
    found = true
    break
  end
end
if not found then redis.call('RPUSH', key, slot .. ARGV[2]) end
redis.call('LTRIM', key, -size, -1)
redis.call('PEXPIRE', key, ARGV[4])
local out, largest = {}, tonumber(ARGV[5])
for _, e in ipairs(redis.call('LRANGE', key, 0, -1)) do
  if #e <= largest then out[#out + 1] = e end
end
return out
`)

// postScript: name, until in µs, value, max (0 or 1), now in µs, grace in µs,
// longest life in µs, fields kept. Fields that ended a while ago or are
// malformed go, and the board ends with its last field.
var postScript = goredis.NewScript(`
local key, name, ends, now = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[5])
local grace, longest, most = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local stays, last, count = false, ends, 0
local first, firstEnds
if redis.call('HLEN', key) > 4 * most then redis.call('DEL', key) end
local all = redis.call('HGETALL', key)
for i = 1, #all, 2 do
  local u = tonumber(string.match(string.sub(all[i + 1], 1, 24), '^(%d+):'))
  if not u or u + grace < now or u > now + longest + grace then
    redis.call('HDEL', key, all[i])
  elseif all[i] == name then
    if ARGV[4] == '1' and u > ends then
      stays = true
      if u > last then last = u end
    end
  else
    count = count + 1
    if u > last then last = u end
    if not firstEnds or u < firstEnds then first, firstEnds = all[i], u end
    if count >= 2 * most then redis.call('HDEL', key, all[i]) end
  end
end
if not stays then
  if count >= most and first then redis.call('HDEL', key, first) end
  redis.call('HSET', key, name, ARGV[2] .. ':' .. ARGV[3])
end
redis.call('PEXPIRE', key, string.format('%d', math.max(1, (last - now + grace) / 1000)))
return 1
`)

// boardScript: fields answered, longest name, longest value. Answers names and
// values, alternating.
var boardScript = goredis.NewScript(`
local out, most, name, value = {}, tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
if redis.call('HLEN', KEYS[1]) > 4 * most then return out end
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if #all[i] <= name and #all[i + 1] <= value and #out < 2 * most then
    out[#out + 1] = all[i]
    out[#out + 1] = all[i + 1]
  end
end
return out
`)

// appendScript: entry, size, ttl in ms.
var appendScript = goredis.NewScript(`
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`)

// tailScript: n, largest entry, largest answer. Answers entries newest first.
var tailScript = goredis.NewScript(`
local out, size, largest, most = {}, 0, tonumber(ARGV[2]), tonumber(ARGV[3])
local all = redis.call('LRANGE', KEYS[1], -tonumber(ARGV[1]), -1)
for i = #all, 1, -1 do
  local n = #all[i]
  if n <= largest then
    size = size + n
    if size > most then break end
    out[#out + 1] = all[i]
  end
end
return out
`)
