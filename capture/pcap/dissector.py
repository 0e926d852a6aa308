"""Generate the Wireshark dissector of Pulsar's protocol, in Lua, from the command registry and the .proto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pulsarium.proto.commands import COMMANDS
from pulsarium.proto.generated.PulsarApi_pb2 import BaseCommand

_FILE = BaseCommand.DESCRIPTOR.file
_NUMBERS = {"INT32", "INT64", "UINT32", "UINT64"}

_RUNTIME = """
local pulsar = Proto("pulsar", "Apache Pulsar")
pulsar.prefs.port = Pref.uint("TCP port", 6650, "The port of brokers. Other ports are recognized by their frames.")

local WITH_ENTRY = { SEND = true, MESSAGE = true, GET_LAST_MESSAGE_ID_RESPONSE = true }
local MOST = 256 * 1024 * 1024

local own = {
    total = ProtoField.uint32("pulsar.total_size", "Total size"),
    size = ProtoField.uint32("pulsar.command_size", "Command size"),
    name = ProtoField.string("pulsar.command", "Command"),
    magic = ProtoField.uint16("pulsar.entry.magic", "Magic", base.HEX),
    checksum = ProtoField.uint32("pulsar.entry.checksum", "CRC32C", base.HEX),
    metadata_size = ProtoField.uint32("pulsar.entry.metadata_size", "Metadata size"),
    broker_size = ProtoField.uint32("pulsar.entry.broker_metadata_size", "Broker entry metadata size"),
    payload = ProtoField.bytes("pulsar.entry.payload", "Payload"),
    undecoded = ProtoField.bytes("pulsar.undecoded", "Bytes that are no part of the protocol"),
}
local all = {}
for _, field in pairs(own) do all[#all + 1] = field end

local makers = {
    enum = function(abbr, name, of) return ProtoField.int32(abbr, name, base.DEC, ENUMS[of]) end,
    int = ProtoField.int64,
    uint = ProtoField.uint64,
    bool = ProtoField.bool,
    double = ProtoField.double,
    string = ProtoField.string,
    bytes = ProtoField.bytes,
}
for message, fields in pairs(MESSAGES) do
    for _, field in pairs(fields) do
        local make = makers[field[2]]
        if make then
            field.shown = make("pulsar." .. message .. "." .. field[1], field[1], field[3])
            all[#all + 1] = field.shown
        end
    end
end
pulsar.fields = all

local odd = ProtoExpert.new("pulsar.odd", "The bytes are not as the protocol has them", expert.group.PROTOCOL,
    expert.severity.WARN)
pulsar.experts = { odd }

-- A number of up to ten bytes, as low and high half, and the position behind it. Lua's own numbers have 53 bits.
local function varint(tvb, at, stop)
    local low, high = 0, 0
    for index = 0, 9 do
        if at >= stop then return nil end
        local byte = tvb(at, 1):uint()
        local part = byte % 128
        at = at + 1
        if index < 4 then
            low = low + part * 2 ^ (7 * index)
        elseif index == 4 then
            low = low + part % 16 * 2 ^ 28
            high = math.floor(part / 16)
        elseif index < 9 then
            high = high + part * 2 ^ (7 * index - 32)
        else
            high = high + part % 2 * 2 ^ 31
        end
        if byte < 128 then return low, high, at end
    end
    return nil
end

local function add_number(tree, field, range, low, high)
    if field[2] == "enum" then
        tree:add(field.shown, range, low < 2 ^ 31 and low or low - 2 ^ 32)
    elseif field[2] == "bool" then
        tree:add(field.shown, range, low + high > 0)
    elseif field[2] == "int" then
        tree:add(field.shown, range, Int64.new(low, high))
    else
        tree:add(field.shown, range, UInt64.new(low, high))
    end
end

local message_of

-- Adds the fields of a message. Returns its fields of one number, by name, or nil when the bytes are broken.
function message_of(tree, tvb, at, stop, message)
    local numbers, fields = {}, MESSAGES[message]
    while at < stop do
        local start, tag, _ = at, nil, nil
        tag, _, at = varint(tvb, at, stop)
        if tag == nil then return nil end
        local wire, field = tag % 8, fields[math.floor(tag / 8)]
        if wire == 0 then
            local low, high
            low, high, at = varint(tvb, at, stop)
            if low == nil then return nil end
            if field and field.shown then
                add_number(tree, field, tvb(start, at - start), low, high)
                numbers[field[1]] = high * 2 ^ 32 + low
            end
        elseif wire == 1 or wire == 5 then
            local size = wire == 1 and 8 or 4
            if at + size > stop then return nil end
            if field and field[2] == "double" then tree:add_le(field.shown, tvb(at, size)) end
            at = at + size
        elseif wire == 2 then
            local size, high
            size, high, at = varint(tvb, at, stop)
            if size == nil or high > 0 or at + size > stop then return nil end
            if field == nil then
                tree:add(own.undecoded, tvb(start, at + size - start))
            elseif field[2] == "message" then
                local below = tree:add(pulsar, tvb(start, at + size - start), field[1])
                if message_of(below, tvb, at, at + size, field[3]) == nil then return nil end
                numbers[field[1]] = 1
            elseif field[2] == "string" or field[2] == "bytes" then
                if size > 0 then
                    tree:add(field.shown, tvb(at, size))
                else
                    tree:add(field.shown, tvb(start, at - start), ""):set_text(field[1] .. ": empty")
                end
            else  -- packed numbers
                local inner = at
                while inner < at + size do
                    local begin, low, top = inner, nil, nil
                    low, top, inner = varint(tvb, inner, at + size)
                    if low == nil then return nil end
                    add_number(tree, field, tvb(begin, inner - begin), low, top)
                end
            end
            at = at + size
        else
            return nil
        end
    end
    return numbers
end

local function batch_of(tree, tvb, at, stop, count)
    for index = 1, count do
        if at + 4 > stop then return false end
        local size = tvb(at, 4):uint()
        if at + 4 + size > stop then return false end
        local below = tree:add(pulsar, tvb(at, 4 + size), "Message " .. index - 1)
        local found = message_of(below, tvb, at + 4, at + 4 + size, "SingleMessageMetadata")
        if found == nil then return false end
        at = at + 4 + size
        local payload = found.payload_size or 0
        if payload > 2 ^ 31 or at + payload > stop then return false end
        if payload > 0 then below:add(own.payload, tvb(at, payload)) end
        at = at + payload
    end
    return true
end

-- Adds an entry: broker entry metadata, checksum, metadata, payload. Returns whether all of it was read.
local function entry_of(tree, tvb, at, stop)
    if at + 2 <= stop and tvb(at, 2):uint() == 0x0e02 then
        if at + 6 > stop then return false end
        tree:add(own.magic, tvb(at, 2))
        tree:add(own.broker_size, tvb(at + 2, 4))
        local size = tvb(at + 2, 4):uint()
        if at + 6 + size > stop then return false end
        local below = tree:add(pulsar, tvb(at + 6, size), "Broker entry metadata")
        if message_of(below, tvb, at + 6, at + 6 + size, "BrokerEntryMetadata") == nil then return false end
        at = at + 6 + size
    end
    if at + 2 <= stop and tvb(at, 2):uint() == 0x0e01 then
        if at + 6 > stop then return false end
        tree:add(own.magic, tvb(at, 2))
        tree:add(own.checksum, tvb(at + 2, 4))
        at = at + 6
    end
    if at + 4 > stop then return false end
    local size = tvb(at, 4):uint()
    tree:add(own.metadata_size, tvb(at, 4))
    at = at + 4
    if at + size > stop then return false end
    if size == 0 then return at == stop end
    local below = tree:add(pulsar, tvb(at, size), "Metadata")
    local found = message_of(below, tvb, at, at + size, "MessageMetadata")
    if found == nil then return false end
    at = at + size
    if at == stop then return true end
    local payload = tree:add(own.payload, tvb(at, stop - at))
    local count = found.num_messages_in_batch
    if count and (found.compression or 0) == 0 and not found.encryption_keys then
        return batch_of(payload, tvb, at, stop, count)
    end
    return true
end

local function frame_of(tvb, pinfo, tree)
    local stop = tvb:len()
    local below = tree:add(pulsar, tvb())
    below:add(own.total, tvb(0, 4))
    below:add(own.size, tvb(4, 4))
    pinfo.cols.protocol = "PULSAR"
    local size = tvb(4, 4):uint()
    local name = nil
    local whole = 8 + size <= stop
    if whole then
        local type = size >= 2 and tvb(8, 1):uint() == 8 and varint(tvb, 9, 8 + size) or nil
        name = type and ENUMS["BaseCommand.Type"][type]
        local command = below:add(pulsar, tvb(8, size), name or "Unknown command")
        if name then command:add(own.name, tvb(8, size), name) end
        whole = message_of(command, tvb, 8, 8 + size, "BaseCommand") ~= nil and name ~= nil
    end
    if name then below:append_text(", " .. name) end
    pinfo.cols.info:append((name or "no command") .. " ")
    if whole and 8 + size < stop then
        if WITH_ENTRY[name] then
            local entry = below:add(pulsar, tvb(8 + size), "Entry")
            whole = entry_of(entry, tvb, 8 + size, stop)
        else
            whole = false
        end
    end
    if not whole and stop == tvb:reported_len() then below:add_proto_expert_info(odd) end
    return stop
end

local function length_of(tvb, _, offset)
    return math.max(8, math.min(tvb(offset, 4):uint() + 4, MOST))
end

function pulsar.dissector(tvb, pinfo, tree)
    pinfo.cols.info = ""
    dissect_tcp_pdus(tvb, tree, 8, length_of, frame_of)
    return tvb:len()
end

local function recognized(tvb, pinfo, tree)
    if tvb:len() < 10 then return false end
    local total, size = tvb(0, 4):uint(), tvb(4, 4):uint()
    if total > MOST or size < 2 or size + 4 > total or tvb(8, 1):uint() ~= 8 then return false end
    local type = varint(tvb, 9, tvb:len())
    if type == nil or ENUMS["BaseCommand.Type"][type] == nil then return false end
    pinfo.conversation = pulsar
    pulsar.dissector(tvb, pinfo, tree)
    return true
end

local port = 0
function pulsar.init()
    if port ~= pulsar.prefs.port then
        if port ~= 0 then DissectorTable.get("tcp.port"):remove(port, pulsar) end
        port = pulsar.prefs.port
        DissectorTable.get("tcp.port"):add(port, pulsar)
    end
end

pulsar:register_heuristic("tcp", recognized)
"""


def dissector() -> str:
    """Return the Lua file."""
    return (
        "\n".join(
            (
                "-- A Wireshark dissector of Apache Pulsar's binary protocol.",
                "-- Generated by `pulsarium capture dissector` from its commands and PulsarApi.proto; do not edit.",
                "",
                "local ENUMS = {",
                *_enums(),
                "}",
                "",
                "-- Fields of each message by number: name, kind, and the message or enumeration.",
                "local MESSAGES = {",
                *_messages(),
                "}",
                _RUNTIME,
            )
        ).rstrip()
        + "\n"
    )


def _enums() -> Iterator[str]:
    found = [*_FILE.enum_types_by_name.values()]
    found += [each for message in _all(_FILE.message_types_by_name.values()) for each in message.enum_types]
    for enum in found:
        if enum is BaseCommand.DESCRIPTOR.enum_types_by_name["Type"]:
            values = {number: spec.name for number, spec in COMMANDS.items()}
        else:
            values = {value.number: value.name for value in enum.values}
        told = ", ".join(f'[{number}] = "{name}"' for number, name in sorted(values.items()))
        yield f'    ["{_name(enum)}"] = {{ {told} }},'


def _messages() -> Iterator[str]:
    for message in _all(_FILE.message_types_by_name.values()):
        yield f'    ["{_name(message)}"] = {{'
        for field in message.fields:
            kind, of = _kind(field)
            told = ", ".join(f'"{each}"' for each in (field.name, kind, of) if each)
            yield f"        [{field.number}] = {{ {told} }},"
        yield "    },"


def _all(messages: Any) -> Iterator[Any]:
    for message in messages:
        yield message
        yield from _all(message.nested_types)


def _kind(field: Any) -> tuple[str, str]:
    if field.message_type is not None:
        return "message", _name(field.message_type)
    if field.enum_type is not None:
        return "enum", _name(field.enum_type)
    types = {getattr(field, f"TYPE_{name}"): name for name in (*_NUMBERS, "BOOL", "DOUBLE", "STRING", "BYTES")}
    name = types[field.type].lower()
    return name.removesuffix("32").removesuffix("64"), ""


def _name(described: Any) -> str:
    return str(described.full_name).removeprefix(f"{_FILE.package}.")
