-- Dissector of Wireshark for NDN packets, NDNLPv2 and the frames of Onym's push half.
-- Fields have the names of the dissector of ndn-tools (ndn.name, ndn.nonce, ...); load one of the two.
-- Use: wireshark -X lua_script:onym.lua, or put it into the folder of personal Lua plugins.

local ndn = Proto("ndn", "Named Data Networking")

local f = {}
local function field(make, key, name, ...)
  f[key] = make("ndn." .. key, name, ...)
end
field(ProtoField.uint32, "type", "Type")
field(ProtoField.uint32, "len", "Length")
field(ProtoField.string, "name", "Name")
field(ProtoField.string, "namecomponent", "Name component")
field(ProtoField.bytes, "implicit_sha256", "ImplicitSha256Digest")
field(ProtoField.bytes, "params_sha256", "ParametersSha256Digest")
field(ProtoField.uint64, "seg", "Segment")
field(ProtoField.uint64, "version", "Version")
field(ProtoField.bool, "canbeprefix", "CanBePrefix")
field(ProtoField.bool, "mustbefresh", "MustBeFresh")
field(ProtoField.string, "hint", "Delegation")
field(ProtoField.uint32, "nonce", "Nonce", base.HEX)
field(ProtoField.uint64, "lifetime", "InterestLifetime (ms)")
field(ProtoField.uint8, "hoplimit", "HopLimit")
field(ProtoField.bytes, "app_params", "ApplicationParameters")
field(ProtoField.uint64, "contenttype", "ContentType")
field(ProtoField.uint64, "freshness", "FreshnessPeriod (ms)")
field(ProtoField.string, "finalblock", "FinalBlockId")
field(ProtoField.bytes, "content", "Content")
field(ProtoField.uint64, "sigtype", "SignatureType")
field(ProtoField.bytes, "keydigest", "KeyDigest")
field(ProtoField.bytes, "sigvalue", "SignatureValue")
field(ProtoField.uint64, "sequence", "Sequence")
field(ProtoField.uint64, "fragindex", "FragIndex")
field(ProtoField.uint64, "fragcount", "FragCount")
field(ProtoField.bytes, "pit_token", "PitToken")
field(ProtoField.uint64, "nack_reason", "NackReason")
field(ProtoField.uint64, "incoming_face", "IncomingFaceId")
field(ProtoField.uint64, "nexthop_face", "NextHopFaceId")
field(ProtoField.uint64, "cache_policy", "CachePolicyType")
field(ProtoField.uint64, "congestion_mark", "CongestionMark")
field(ProtoField.uint64, "ack", "Ack")
field(ProtoField.uint64, "txseq", "TxSequence")
field(ProtoField.bytes, "trace_id", "Trace")
field(ProtoField.bytes, "span_id", "Span of who sent it")
field(ProtoField.uint8, "push.version", "Version of the frame")
field(ProtoField.uint8, "push.form", "Form of the forwarding part")
field(ProtoField.uint8, "push.hoplimit", "Hop limit")
field(ProtoField.uint8, "push.strategy", "Dissemination strategy")
field(ProtoField.bool, "push.flags.keep", "Caches may keep it", 8, nil, 1)
field(ProtoField.bool, "push.flags.cached", "A cache sent it", 8, nil, 2)
field(ProtoField.uint8, "push.flags.age", "Parts of 64 of its lifetime that are over", base.DEC, nil, 0xfc)
field(ProtoField.bytes, "push.route", "Forwarding part")
field(ProtoField.string, "push.id", "Identifier")
field(ProtoField.bytes, "push.payload", "Payload")
local list = {}
for _, one in pairs(f) do list[#list + 1] = one end
ndn.fields = list

local malformed = ProtoExpert.new("ndn.malformed", "Malformed", expert.group.MALFORMED, expert.severity.ERROR)
ndn.experts = { malformed }

local PACKET_MAX = 8800
local DEPTH_MAX = 16
local REASONS = { [50] = "Congestion", [100] = "Duplicate", [150] = "NoRoute" }

-- A TLV number at `at`: number and octets, or nil when it is not whole.
local function number(buf, at)
  if at >= buf:len() then return nil end
  local first = buf(at, 1):uint()
  if first < 253 then return first, 1 end
  local len = ({ [253] = 2, [254] = 4, [255] = 8 })[first]
  if at + 1 + len > buf:len() then return nil end
  if len == 8 then return buf(at + 1, 8):uint64():tonumber(), 9 end
  return buf(at + 1, len):uint(), 1 + len
end

-- TYPE, offset of VALUE, its length; nil when the head is not whole.
local function head(buf, at)
  local typ, a = number(buf, at)
  if not typ then return nil end
  local len, b = number(buf, at + a)
  if not len then return nil end
  return typ, at + a + b, len
end

-- Calls `each(type, whole range, value range)` for the elements of `buf`; false when one is cut.
local function elements(buf, each)
  local at = 0
  while at < buf:len() do
    local typ, value, len = head(buf, at)
    if not typ or value + len > buf:len() then return false end
    each(typ, buf(at, value - at + len), len > 0 and buf(value, len) or nil)
    at = value + len
  end
  return true
end

local function octets(range)
  return range and range:tvb() or ByteArray.new():tvb("empty")
end

local function escaped(range)
  if not range then return "..." end
  local text, dots = {}, true
  for i = 0, range:len() - 1 do
    local c = range(i, 1):uint()
    local char = string.char(c)
    dots = dots and char == "."
    text[#text + 1] = char:match("[%w%.%-_~]") and char or string.format("%%%02X", c)
  end
  return table.concat(text) .. (dots and "..." or "")
end

-- A name as text; with a tree its components are added to it.
local function name_of(range, tree)
  local text = {}
  local is_whole = not range or elements(octets(range), function(typ, whole, value)
    local prefix = typ == 8 and "" or (typ .. "=")
    text[#text + 1] = prefix .. escaped(value)
    if not tree then return end
    tree:add(f.namecomponent, whole, prefix .. escaped(value))
    if typ == 1 and value then tree:add(f.implicit_sha256, value) end
    if typ == 2 and value then tree:add(f.params_sha256, value) end
    if value and value:len() <= 8 then
      if typ == 50 then tree:add(f.seg, value, value:uint64()) end
      if typ == 54 then tree:add(f.version, value, value:uint64()) end
    end
  end)
  return "/" .. table.concat(text, "/"), is_whole
end

local NUMBERS = {
  [12] = f.lifetime, [24] = f.contenttype, [25] = f.freshness, [27] = f.sigtype, [82] = f.fragindex,
  [83] = f.fragcount, [801] = f.nack_reason, [812] = f.incoming_face, [816] = f.nexthop_face,
  [821] = f.cache_policy, [832] = f.congestion_mark, [81] = f.sequence, [836] = f.ack, [840] = f.txseq,
}
local BYTES = { [21] = f.content, [23] = f.sigvalue, [29] = f.keydigest, [36] = f.app_params,
  [46] = f.sigvalue, [98] = f.pit_token }
local NESTED = { [20] = "MetaInfo", [22] = "SignatureInfo", [28] = "KeyLocator", [44] = "InterestSignatureInfo",
  [800] = "Nack", [820] = "CachePolicy" }
local packet

-- One element of a packet. `seen` gathers what the column shows.
local function element(typ, whole, value, tree, seen, depth)
  if typ == 7 then
    local text = name_of(value)
    local item = tree:add(f.name, whole, text)
    name_of(value, item)
    seen.name = seen.name or text
  elseif typ == 30 then
    elements(octets(value), function(inner, range, delegation)
      if inner == 7 then tree:add(f.hint, range, (name_of(delegation))) end
    end)
  elseif typ == 33 then tree:add(f.canbeprefix, whole, true)
  elseif typ == 18 then tree:add(f.mustbefresh, whole, true)
  elseif typ == 10 and value and value:len() == 4 then tree:add(f.nonce, value)
  elseif typ == 34 and value and value:len() == 1 then tree:add(f.hoplimit, value)
  elseif typ == 26 then
    elements(octets(value), function(inner, range, component)
      tree:add(f.finalblock, range, (inner == 8 and "" or (inner .. "=")) .. escaped(component))
    end)
  elseif NUMBERS[typ] and value and value:len() <= 8 then
    local n = value:uint64()
    tree:add(NUMBERS[typ], value, n)
    if typ == 801 then seen.reason = n:tonumber() end
    if typ == 82 then seen.index = n:tonumber() end
    if typ == 83 then seen.count = n:tonumber() end
  elseif BYTES[typ] and value then tree:add(BYTES[typ], value)
  elseif typ == 912 then
    -- Form 0 of 26 octets; other forms mean nothing to anybody.
    if value and value:len() == 26 and value(0, 1):uint() == 0 then
      tree:add(f.trace_id, value(1, 16))
      tree:add(f.span_id, value(17, 8))
    end
  elseif NESTED[typ] and value and depth < DEPTH_MAX then
    if typ == 800 then seen.nack = true end
    local inner = tree:add(ndn, whole, NESTED[typ])
    elements(octets(value), function(t, w, v) element(t, w, v, inner, seen, depth + 1) end)
  elseif typ == 800 then seen.nack = true
  elseif typ == 80 and value then
    seen.fragment = true
    if (seen.count or 1) > 1 then
      seen.kind = string.format("Fragment %d/%d", (seen.index or 0), seen.count)
    elseif depth < DEPTH_MAX then
      packet(octets(value), tree, seen, depth + 1)
    end
  end
end

local function id_of(buf, at, labels)
  local text = {}
  for i = 0, labels - 1 do
    local hex = buf(at + 8 * i, 8):bytes():tohex():lower():gsub("^0+", "")
    text[#text + 1] = string.rep("0", math.max(0, 4 - #hex)) .. hex
  end
  return "/" .. table.concat(text, "/")
end

-- A frame of the push half; false when it is cut.
local function push(buf, tree, seen)
  seen.kind = "Push"
  if buf:len() < 4 then return false end
  local form = buf(0, 1):uint() % 16
  tree:add(f["push.version"], buf(0, 1), math.floor(buf(0, 1):uint() / 16))
  tree:add(f["push.form"], buf(0, 1), form)
  tree:add(f["push.hoplimit"], buf(1, 1))
  tree:add(f["push.strategy"], buf(2, 1))
  for _, flag in ipairs({ "keep", "cached", "age" }) do tree:add(f["push.flags." .. flag], buf(3, 1)) end
  local at, len = 4, ({ [0] = 0, [1] = 33, [2] = 42 })[form]
  if form == 3 or form == 4 then
    if buf:len() < at + 4 then return false end
    len = 4 + buf(at + 2, 2):uint() + (form == 4 and 33 or 0)
  end
  if not len or at + len > buf:len() then return false end
  if len > 0 then tree:add(f["push.route"], buf(at, len)) end
  at = at + len
  local ids, n = number(buf, at)
  if not ids then return false end
  at = at + n
  for _ = 1, ids do
    if at >= buf:len() then return false end
    local labels = buf(at, 1):uint()
    if at + 1 + 8 * labels > buf:len() then return false end
    local text = id_of(buf, at + 1, labels)
    tree:add(f["push.id"], buf(at, 1 + 8 * labels), text)
    seen.name = seen.name or text
    at = at + 1 + 8 * labels
  end
  local options
  options, n = number(buf, at)
  if not options or at + n + options > buf:len() then return false end
  at = at + n + options
  if at < buf:len() then tree:add(f["push.payload"], buf(at)) end
  return true
end

local KINDS = { [5] = "Interest", [6] = "Data", [100] = "NDNLPv2", [240] = "Push", [242] = "PushApp" }

-- A packet or frame at the beginning of `buf`.
packet = function(buf, tree, seen, depth)
  local typ, value, len = head(buf, 0)
  if not typ or value + len > buf:len() or not KINDS[typ] then
    tree:add_proto_expert_info(malformed)
    seen.kind = seen.kind or "malformed"
    return
  end
  local inner = tree:add(ndn, buf(0, value + len), KINDS[typ])
  inner:add(f.type, buf(0, 1), typ)
  inner:add(f.len, buf(0, value), len)
  local is_whole = true
  local body = octets(len > 0 and buf(value, len) or nil)
  if typ == 240 then
    is_whole = push(body, inner, seen)
  elseif typ == 242 then
    seen.kind = "PushApp"
  elseif len > 0 then
    if typ ~= 100 then seen.kind = KINDS[typ] end
    is_whole = elements(body, function(t, w, v) element(t, w, v, inner, seen, depth) end)
  end
  if typ == 100 and not seen.fragment then seen.kind = "Idle" end
  if not is_whole then inner:add_proto_expert_info(malformed) end
end

local function one(buf, pinfo, root)
  local tree = root:add(ndn, buf())
  local seen = {}
  packet(buf, tree, seen, 0)
  local text = seen.kind or "?"
  if seen.nack then text = "Nack " .. (REASONS[seen.reason] or tostring(seen.reason or "None")) .. " " .. text end
  if seen.name then text = text .. " " .. seen.name end
  tree:append_text(": " .. text)
  return text
end

-- Length of the packet at `at`; nil when its head is not whole, 0 when there is none.
local function length(buf, at)
  local typ, value, len = head(buf, at)
  if not typ then return nil end
  local whole = value - at + len
  return (KINDS[typ] and whole <= PACKET_MAX) and whole or 0
end

function ndn.dissector(buf, pinfo, root)
  local at, texts = 0, {}
  local is_stream = pinfo.can_desegment > 0
  while at < buf:len() do
    local len = length(buf, at)
    if len == 0 then break end
    if not len or at + len > buf:len() then
      if is_stream then
        pinfo.desegment_offset = at
        pinfo.desegment_len = len and at + len - buf:len() or DESEGMENT_ONE_MORE_SEGMENT
        at = buf:len()
      else
        texts[#texts + 1] = one(buf(at):tvb(), pinfo, root)
      end
      break
    end
    texts[#texts + 1] = one(buf(at, len):tvb(), pinfo, root)
    at = at + len
    -- What follows in a datagram or a frame is padding.
    if not is_stream then break end
  end
  if #texts == 0 and at == 0 then return 0 end
  local carrier = tostring(pinfo.cols.protocol)
  if not carrier:find("NDN") then pinfo.cols.protocol = carrier .. " (NDN)" end
  if #texts > 0 then pinfo.cols.info = table.concat(texts, "; ") end
  return buf:len()
end

for _, port in ipairs({ 6363, 56363 }) do DissectorTable.get("udp.port"):add(port, ndn) end
DissectorTable.get("tcp.port"):add(6363, ndn)
DissectorTable.get("ws.port"):add(9696, ndn)
DissectorTable.get("ethertype"):add(0x8624, ndn)
DissectorTable.get("ppp.protocol"):add(0x0077, ndn)
DissectorTable.get("wtap_encap"):add((wtap_encaps or wtap).USER0, ndn)
