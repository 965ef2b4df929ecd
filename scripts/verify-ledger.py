#!/usr/bin/env python3
"""Verifies what `handoffd audit export` prints, without handoffd.

    handoffd audit export | scripts/verify-ledger.py
    scripts/verify-ledger.py export.jsonl --checkpoint checkpoint.json --public-key HEX

Prints `ok: N entries, TOPIC, RUNNING HASH` and exits with 0, or `bad: WHERE: WHAT (CODE)` for the first
difference and exits with 1; 2 is for wrong use. Written from docs/ledger.md alone, for the standard
library of Python 3.9 or newer, so that it can be read in one sitting and run anywhere.
"""

import argparse
import hashlib
import json
import re
import sys

LINE_BYTES_MAX = 65536
WIRE_BYTES_MAX = 8192
LEVELS_MAX = 64
WHOLE_MAX = 2**53 - 1

# The members of an Agent Wire v1.1 envelope: type, and whether it must be there.
ENVELOPE = {
    "extensions": (dict, False), "payload": (dict, True), "sender": (str, True), "state": (dict, False),
    "stream": (dict, True), "ts": (str, True), "type": (str, True), "wire": (str, True), "wire_id": (str, True),
}
STREAM = {
    "causation_id": (str, False), "context_id": (str, True), "correlation_id": (str, True),
    "parent_task_id": (str, False), "reference_task_ids": (list, False), "stream_id": (str, True),
    "stream_seq": (int, True),
}


class Bad(Exception):
    """The first difference: a code, and what was expected."""

    def __init__(self, code, text):
        super().__init__(f"{text} ({code})")
        self.code = code


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# --- JSON in its one spelling (RFC 8785, whole numbers only) ---

SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
SPECIAL = re.compile('["\\\\\x00-\x1f]')


def string(text):
    return '"' + SPECIAL.sub(lambda found: SHORT.get(found[0]) or "\\u%04x" % ord(found[0]), text) + '"'


def canonical(value, levels=LEVELS_MAX):
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int) and abs(value) <= WHOLE_MAX:
        return str(value)
    if isinstance(value, str):
        return string(value)
    if levels and isinstance(value, list):
        return "[" + ",".join(canonical(item, levels - 1) for item in value) + "]"
    if levels and isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(string(name) + ":" + canonical(value[name], levels - 1) for name in names) + "}"
    raise ValueError("neither whole numbers only nor within the limits")


# --- one event ---

def read_line(line):
    """The topic, sequence number, timestamp, running hash and wire text of an event line."""
    try:
        value = json.loads(line.decode("utf-8"))
        hcs, wire = value["hcs"], value["wire"]
        topic, sequence = hcs["topic_id"], hcs["sequence_number"]
        timestamp, running_hash = hcs["consensus_timestamp"], hcs["running_hash"]
        if isinstance(sequence, bool) or not isinstance(sequence, int) or not 0 <= sequence < 2**64:
            raise ValueError("sequence_number")
        spelled = (
            '{"hcs":{"topic_id":' + string(topic) + ',"sequence_number":' + str(sequence)
            + ',"consensus_timestamp":' + string(timestamp) + ',"running_hash":' + string(running_hash)
            + '},"wire":' + string(wire) + "}"
        )
        if spelled.encode("utf-8") != line or SPECIAL.search(timestamp + running_hash):
            raise ValueError("spelling")
        return topic, sequence, timestamp, running_hash, wire
    except (ValueError, KeyError, TypeError, RecursionError):
        raise Bad("line_form", "the line is not an event line in its one spelling") from None


def is_timestamp(text):
    found = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})\.[0-9]{9}Z", text)
    if not found:
        return False
    year, month, day, hour, minute, second = map(int, found.groups())
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = [31, 29 if leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return 1 <= month <= 12 and 1 <= day <= days[month - 1] and hour < 24 and minute < 60 and second < 60


def fits(value, members):
    """Has the object these members, of these types, and no others?"""
    for name, (kind, required) in members.items():
        if name not in value:
            if required:
                return False
        elif not isinstance(value[name], kind) or isinstance(value[name], bool):
            return False
    return all(name in members for name in value)


def read_wire(text):
    """The wire_id, stream_id and stream_seq of a wire text."""
    if len(text.encode("utf-8")) > WIRE_BYTES_MAX:
        raise Bad("wire_too_long", f"the wire text has more than {WIRE_BYTES_MAX} bytes")
    try:
        wire = json.loads(text)
        same = canonical(wire) == text
    except (ValueError, RecursionError):
        same = False
    if not same:
        raise Bad("wire_form", "the wire text is not canonical JSON with whole numbers only (RFC 8785)")
    if not isinstance(wire, dict) or not fits(wire, ENVELOPE) or not fits(wire["stream"], STREAM):
        raise Bad("wire_envelope", "the wire text is not an Agent Wire v1.1 envelope")
    stream = wire["stream"]
    references = stream.get("reference_task_ids", [])
    if stream["stream_seq"] < 0 or not all(isinstance(reference, str) for reference in references):
        raise Bad("wire_envelope", "the wire text is not an Agent Wire v1.1 envelope")
    if wire["wire"] != "1.1":
        raise Bad("wire_version", "the wire text is of another version, expected 1.1")
    if not re.fullmatch("wire_[0-9A-Za-z]{8,64}", wire["wire_id"]):
        raise Bad("wire_id", "wire_id is not `wire_` and 8 to 64 letters or digits")
    return wire["wire_id"], stream["stream_id"], stream["stream_seq"]


# --- the chain ---

class Chain:
    def __init__(self, checkpoint=None):
        self.topic, self.hash, self.timestamp, self.entries = None, None, "", 0
        self.wire_ids, self.streams, self.checkpoint = set(), {}, checkpoint

    def enter(self, line):
        topic, sequence, timestamp, running_hash, wire = read_line(line)
        if self.topic is None:
            if self.checkpoint and self.checkpoint["topic_id"] != topic:
                raise Bad("checkpoint_topic", "topic_id is another one than in the checkpoint")
            self.topic, self.hash = topic, genesis(topic)
            self.compare()
        elif topic != self.topic:
            raise Bad("topic", "topic_id is another one than in entry 1")
        if sequence != self.entries + 1:
            raise Bad("sequence", f"sequence_number is {sequence}, expected {self.entries + 1}")
        if not is_timestamp(timestamp):
            raise Bad("timestamp_form", "consensus_timestamp is not of the form YYYY-MM-DDThh:mm:ss.nnnnnnnnnZ")
        if timestamp <= self.timestamp:
            raise Bad("timestamp_order", "consensus_timestamp is not later than that of the entry before")
        wire_hash = sha256(wire.encode("utf-8"))
        expected = sha256(self.hash, sequence.to_bytes(8, "big"), timestamp.encode("ascii"), wire_hash)
        if running_hash != expected.hex():
            raise Bad("running_hash", f"running_hash differs, expected {expected.hex()}")
        wire_id, stream_id, stream_seq = read_wire(wire)
        if (wire_id, stream_id) in self.wire_ids:
            raise Bad("wire_id_repeated", "wire_id belongs to an earlier entry of its stream")
        self.wire_ids.add((wire_id, stream_id))
        after = self.streams.get(stream_id, 0) + 1
        if stream_seq != after:
            raise Bad("stream_seq", f"stream_seq is {stream_seq}, expected {after} in its stream")
        self.streams[stream_id] = after
        self.hash, self.timestamp, self.entries = expected, timestamp, sequence
        self.compare()

    def compare(self):
        kept = self.checkpoint
        if kept and kept["sequence"] == self.entries and kept["running_hash"] != self.hash.hex():
            expected = kept["running_hash"]
            raise Bad("checkpoint_hash", f"running_hash is not the one in the checkpoint, expected {expected}")

    def finish(self):
        kept = self.checkpoint
        if kept and kept["sequence"] > self.entries:
            raise Bad("truncated", f"the ledger ends after {self.entries} entries, expected {kept['sequence']}")
        if kept and self.entries == 0:
            self.hash = genesis(kept["topic_id"])
            self.compare()

    def entry_of(self, bad):
        # An entry is in the chain already when it meets its checkpoint.
        return self.entries if bad.code == "checkpoint_hash" else self.entries + 1


def genesis(topic):
    return sha256(b"handoffd/ledger/v1", topic.encode("utf-8"))


def verify(stream, checkpoint=None):
    """Returns the line that says how it went, and whether it went well."""
    chain, number = Chain(checkpoint), 0
    try:
        while line := stream.readline(LINE_BYTES_MAX):
            number += 1
            if not line.endswith(b"\n"):
                if len(line) == LINE_BYTES_MAX:
                    raise Bad("line_too_long", f"the line is longer than {LINE_BYTES_MAX} bytes")
                raise Bad("line_unended", "the line is cut off, expected a line feed at its end")
            chain.enter(line[:-1])
    except Bad as bad:
        return f"bad: line {number}, entry {chain.entry_of(bad)}: {bad}", False
    try:
        chain.finish()
    except Bad as bad:
        return f"bad: entry {chain.entry_of(bad)}: {bad}", False
    if chain.entries == 0:
        return "ok: 0 entries, -, -", True
    return f"ok: {chain.entries} entries, {string(chain.topic)[1:-1]}, {chain.hash.hex()}", True


# --- Ed25519 (RFC 8032, section 5.1), for verifying only: slow, and not in constant time ---

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT_OF_MINUS_1 = pow(2, (P - 1) // 4, P)
NEUTRAL = (0, 1, 1, 0)


def add(a, b):
    """The sum of two points in extended coordinates (X, Y, Z, T): x = X/Z, y = Y/Z, x * y = T/Z."""
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = f - e, h - g, h + g, f + e
    return e * f % P, g * h % P, f * g % P, e * h % P


def multiply(scalar, point):
    total = NEUTRAL
    while scalar:
        if scalar & 1:
            total = add(total, point)
        point, scalar = add(point, point), scalar >> 1
    return total


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def decompress(encoded):
    """The point that 32 bytes stand for, or None."""
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT_OF_MINUS_1 % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return x, y, 1, x * y % P


BASE = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def is_signature(public, message, signature):
    key, r = decompress(public), decompress(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= ORDER:
        return False
    # Points of small order would let one signature pass for many messages.
    if same(multiply(8, key), NEUTRAL) or same(multiply(8, r), NEUTRAL):
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    return same(multiply(s, BASE), add(r, multiply(k, key)))


# --- checkpoints ---

def once(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands twice")
    return members


def read_checkpoint(data, public):
    form = {"topic_id": (str, True), "sequence": (int, True), "running_hash": (str, True),
            "time": (str, True), "key_id": (str, True), "signature": (str, True)}
    try:
        kept = json.loads(data.decode("utf-8"), object_pairs_hook=once)
        if not isinstance(kept, dict) or not fits(kept, form) or not 0 <= kept["sequence"] <= WHOLE_MAX:
            raise ValueError("form")
        if not re.fullmatch("[0-9a-f]{64}", kept["running_hash"]):
            raise ValueError("running_hash")
        if not re.fullmatch("[0-9a-f]{128}", kept["signature"]):
            raise ValueError("signature")
        signed = canonical({name: value for name, value in kept.items() if name != "signature"}).encode("utf-8")
    except (ValueError, RecursionError):
        raise Bad("checkpoint_form", "the checkpoint does not have the form of one") from None
    if not is_signature(public, signed, bytes.fromhex(kept["signature"])):
        raise Bad("checkpoint_signature", "the checkpoint's signature is not that of the key that was given")
    return kept


def check(stream, checkpoint=None, public=None):
    """Verifies an export, against a checkpoint file's bytes if there are any."""
    try:
        kept = None if checkpoint is None else read_checkpoint(checkpoint, public)
    except Bad as bad:
        return f"bad: {bad}", False
    return verify(stream, kept)


def main():
    parser = argparse.ArgumentParser(description="Verifies what `handoffd audit export` prints.")
    parser.add_argument("export", nargs="?", help="the export; standard input if left out")
    parser.add_argument("--checkpoint", help="a checkpoint file that the export must agree with")
    parser.add_argument("--public-key", help="the gateway's Ed25519 public key, 64 hex digits")
    arguments = parser.parse_args()
    if (arguments.checkpoint is None) != (arguments.public_key is None):
        parser.error("--checkpoint and --public-key go together")
    if arguments.public_key is not None and not re.fullmatch("[0-9a-f]{64}", arguments.public_key):
        parser.error("--public-key is not 64 lower-case hex digits")
    checkpoint, public = None, None
    try:
        if arguments.checkpoint is not None:
            public = bytes.fromhex(arguments.public_key)
            with open(arguments.checkpoint, "rb") as file:
                checkpoint = file.read()
        if arguments.export is None:
            said, well = check(sys.stdin.buffer, checkpoint, public)
        else:
            with open(arguments.export, "rb") as file:
                said, well = check(file, checkpoint, public)
    except OSError as error:
        parser.error(str(error))
    sys.stdout.reconfigure(encoding="utf-8")
    print(said)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
