"""Opens a sealed record, from nothing but the page StorageFormat of the documentation.

Reads JSON from standard input: the user's key, the row of a data key, the name of a cache, the key of a
record and the record, bytes in hexadecimal. Writes the payload and the validator, in hexadecimal.
"""

import base64
import json
import struct
import sys

from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def main():
    given = json.load(sys.stdin)
    user_key, row, record, physical = (
        bytes.fromhex(given[name]) for name in ("userKey", "row", "record", "physicalKey"))
    name = given["cache"].encode()

    # A metadata row is a checksum of four bytes, and JSON.
    data_key = json.loads(row[4:])
    sealed = base64.b64decode(data_key["sealed"])
    place = (b"larder data key" + struct.pack("<I", data_key["id"])
             + bytes([data_key["coverage"]]) + data_key["key"].encode())
    key = AESGCM(AESGCM(user_key).decrypt(sealed[:12], sealed[12:], place))

    # The physical key is 10, the id of the cache as a varint, and the user's key.
    start = 1
    while physical[start] & 0x80:
        start += 1
    where = struct.pack("<H", len(name)) + name + physical[start + 1:]

    def opened(field, place):
        assert struct.unpack("<I", field[:4])[0] == data_key["id"], "another data key"
        return key.decrypt(field[4:16], field[16:], place + where)

    flags, coder, more = record[1], record[2], record[3]
    schema = record[4:8]
    offset = 36
    offset += 8 if flags & 1 << 5 else 0
    offset += 16 if flags & 1 << 7 else 0
    offset += 8 if more & 1 << 1 else 0
    offset += 8 if more & 1 << 2 else 0
    validator = None
    if flags & 1 << 1:
        count = shift = 0
        while True:
            byte = record[offset]
            offset += 1
            count |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
        validator = record[offset:offset + count]
        offset += count
        if more & 1 << 3:
            validator = opened(validator, b"\x02")
    if more & 1:
        tags, offset = record[offset], offset + 1
        for _ in range(tags):
            offset += 1 + record[offset]
    payload = record[offset:]
    if flags & 1 << 3:
        payload = opened(payload, bytes([1, 1 if flags & 1 << 2 else 0, coder]) + schema)
    print(json.dumps({"payload": payload.hex(), "validator": validator.hex() if validator else None}))


main()
