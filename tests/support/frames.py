"""HTTP/2 frame by frame, for tests that say what no library would say.  Stands alone: tests copy it into a sandbox.

As a program it takes rows as JSON, [fields, body] each, says one after the other on a connection, and prints what came of each.
"""
import json
import socket
import ssl
import struct
import sys

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, END_HEADERS = 1, 4


def frame(kind, flags, stream, payload=b""):
    return struct.pack("!I", len(payload))[1:] + bytes([kind, flags]) + struct.pack("!I", stream) + payload


def string(value):
    value = value.encode("latin1")
    first, rest = min(len(value), 127), len(value) - 127
    out = bytearray([first])
    while first == 127 and rest >= 128:
        out.append(rest % 128 + 128)
        rest //= 128
    if first == 127:
        out.append(rest)
    return bytes(out) + value


def block(fields):
    """Of HPACK only what needs no table."""
    return b"".join(b"\0" + string(name) + string(value) for name, value in fields)


class Client:
    def __init__(self, name, port=443):
        context = ssl.create_default_context()
        context.set_alpn_protocols(["h2"])
        self.socket = context.wrap_socket(socket.create_connection((name, port), 30), server_hostname=name)
        self.heard, self.streams, self.goaway, self.gone = b"", {}, None, False
        self.say(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))

    def say(self, *frames):
        try:
            self.socket.sendall(b"".join(frames))
        except OSError:
            self.gone = True

    def ask(self, stream, fields, body=None, ended=True):
        self.say(frame(HEADERS, END_HEADERS | (END_STREAM if body is None and ended else 0), stream, block(fields)))
        if body is not None:
            self.say(frame(DATA, END_STREAM if ended else 0, stream, body.encode("latin1")))

    def next(self):
        """One frame; None: the connection is over."""
        while len(self.heard) < 9 or len(self.heard) < 9 + int.from_bytes(self.heard[:3], "big"):
            try:
                more = self.socket.recv(65536)
            except OSError:
                more = b""
            if not more:
                self.gone = True
                return None
            self.heard += more
        size = 9 + int.from_bytes(self.heard[:3], "big")
        found, self.heard = self.heard[:size], self.heard[size:]
        return found[3], found[4], int.from_bytes(found[5:9], "big"), found[9:]

    def wait(self, *streams):
        """Until these are over, or everything is; what was said on each, and how it ended."""
        while not all(self.streams.get(stream, {}).get("end") for stream in streams):
            found = self.next()
            if not found:
                break
            kind, flags, stream, payload = found
            seen = self.streams.setdefault(stream, {"data": "", "end": None})
            if kind == DATA:
                seen["data"] += payload.decode("latin1")
                if payload:
                    self.say(frame(WINDOW_UPDATE, 0, 0, struct.pack("!I", len(payload))), frame(WINDOW_UPDATE, 0, stream, struct.pack("!I", len(payload))))
            if kind == RST_STREAM and not seen["end"]:
                seen["end"] = "reset %d" % struct.unpack("!I", payload)[0]
            elif kind == GOAWAY:
                self.goaway = struct.unpack("!I", payload[4:8])[0]
            elif kind == SETTINGS and not flags & 1:
                self.say(frame(SETTINGS, 1, 0))
            elif kind in (DATA, HEADERS) and flags & END_STREAM:
                seen["end"] = seen["end"] or "whole"
        return {stream: self.streams.get(stream, {"data": "", "end": None}) for stream in streams}


def one_after_the_other(name, rows):
    client, stream = Client(name), 1
    for fields, body in rows:
        if client.gone:
            client, stream = Client(name), 1
        client.ask(stream, fields, body)
        print(json.dumps(client.wait(stream)[stream]), flush=True)
        stream += 2


if __name__ == "__main__":
    one_after_the_other(sys.argv[1], json.loads(sys.argv[2]))
