package redis

import goredis "github.com/redis/go-redis/v9"

// Every script uses only the keys that it is given, and they are in one slot, so
// it runs in a Cluster. Times are the caller's: a field ends by the clock of the
// replica that wrote it.

// chargeScript takes: now in µs, the most holders of a meter, the longest window
// in µs; then for the charge of each key: field, holder or "", amount, limit or 0,
// window in µs, calendar (0 or 1), least amount or 0. The field of a meter holds
// "INDEX BEFORE NOW", that of a holder "AMOUNT UNTIL". All keys are in one slot.
// It returns the number of the refused charge, from 1, or 0; then for each charge
// three numbers without the charge: index, before and now; with a holder, what the
// others hold, the number of holders, and 0.
var chargeScript = goredis.NewScript(`
local now, most, longest = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local refused, out, writes = 0, {}, {}
local function text(n) return string.format('%.0f', n) end
local function numbers(v, pattern)
  if not v or #v > 64 then return end
  local a, b, c = string.match(v, pattern)
  a, b, c = tonumber(a), tonumber(b), tonumber(c)
  if a and math.max(a, b, c or 0) < 2 ^ 53 then return a, b, c end
end
for i, key in ipairs(KEYS) do
  local at = 7 * i - 3
  local field, holder, amount, limit = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local window, used = tonumber(ARGV[at + 4]), 0
  if holder ~= '' then
    local holders, late = 1, false
    if redis.call('HLEN', key) > 2 * most then redis.call('DEL', key) end
    local all = redis.call('HGETALL', key)
    for j = 1, #all, 2 do
      if string.sub(all[j], 1, #field) == field then
        local n, ends = numbers(all[j + 1], '^(%d+) (%d+)$')
        if not n or ends <= now or ends > now + longest then
          redis.call('HDEL', key, all[j])
        elseif all[j] == field .. holder then
          late = ends > now + window
        else
          used, holders = used + n, holders + 1
        end
      end
    end
    if not late and holders <= most then
      writes[#writes + 1] = {key, field .. holder, text(amount) .. ' ' .. text(now + window), window}
    end
    out[3 * i - 2], out[3 * i - 1], out[3 * i] = text(used), text(holders), '0'
  else
    local index = math.floor(now / window)
    local was, before, count = numbers(redis.call('HGET', key, field), '^(%d+) (%d+) (%d+)$')
    if not was or was < index - 1 or was > index + 1 then
      was, before, count = index, 0, 0
    elseif was == index - 1 then
      was, before, count = index, count, 0
    end
    used = count
    if ARGV[at + 5] == '0' then
      used = count + math.ceil(before * (1 - math.max(0, (now - was * window) / window)))
    end
    out[3 * i - 2], out[3 * i - 1], out[3 * i] = text(was), text(before), text(count)
    local room, least = limit - used, tonumber(ARGV[at + 6])
    if limit > 0 and amount > room and least > 0 and least <= room then amount = room end
    count = math.min(count + amount, 2 ^ 50)
    if count < 0 then before, count = math.max(0, before + count), 0 end
    writes[#writes + 1] = {key, field, text(was) .. ' ' .. text(before) .. ' ' .. text(count), 2 * window}
  end
  if refused == 0 and limit > 0 and amount > 0 and used + amount > limit then refused = i end
end
if refused == 0 then
  for _, w in ipairs(writes) do
    redis.call('HSET', w[1], w[2], w[3])
    local ms = math.ceil(w[4] / 1000)
    if redis.call('PTTL', w[1]) < ms then redis.call('PEXPIRE', w[1], text(ms)) end
  end
end
table.insert(out, 1, text(refused))
return out
`)

// pushScript takes: "LEN:SLOT", value, size, ttl in ms, largest element. It returns
// the ring without elements that are too large.
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

// postScript takes: name, until in µs, value, max (0 or 1), now in µs, grace in µs,
// longest lifetime in µs, most fields. It removes malformed fields and those that
// ended longer than grace ago. The board expires with its last field.
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

// boardScript takes: most fields, longest name, longest value. It returns names and
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

// appendScript takes: entry, size, ttl in ms.
var appendScript = goredis.NewScript(`
redis.call('RPUSH', KEYS[1], ARGV[1])
redis.call('LTRIM', KEYS[1], -tonumber(ARGV[2]), -1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`)

// tailScript takes: n, largest entry, largest reply in bytes. It returns entries, newest first.
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
