"""NET: with no rule there is no network."""
import contextlib
import errno
import socket
import subprocess

from attack import all_refused, attack, control_fires, equal, main, test


def own_addresses():
    """Addresses by which this machine reaches itself."""
    found = ["127.0.0.1", "::1"]
    with contextlib.suppress(OSError):
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        probe.connect(("192.0.2.1", 9))  # sends nothing; only asks which address would be used
        found.append(probe.getsockname()[0])
    return found


class Services:
    """A TCP and a UDP service on every own address, that count who comes."""

    def __init__(self):
        self.tcp, self.udp, self.targets = [], [], []
        for address in own_addresses():
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            with contextlib.suppress(OSError):
                tcp, udp = socket.socket(family, socket.SOCK_STREAM), socket.socket(family, socket.SOCK_DGRAM)
                tcp.bind((address, 0))
                tcp.listen(16)
                udp.bind((address, tcp.getsockname()[1]))
                for one in (tcp, udp):
                    one.setblocking(False)
                self.tcp.append(tcp)
                self.udp.append(udp)
                self.targets += [address, str(tcp.getsockname()[1])]

    def count(self):
        arrived = 0
        for one in self.tcp + self.udp:
            with contextlib.suppress(BlockingIOError):
                while True:
                    one.accept()[0].close() if one in self.tcp else one.recv(100)
                    arrived += 1
        return arrived

    def close(self):
        for one in self.tcp + self.udp:
            one.close()


ELSEWHERE = "192.0.2.1 80 8.8.8.8 53 169.254.169.254 80 10.0.0.1 443 192.168.1.1 80 224.0.0.251 5353 255.255.255.255 67 2001:4860:4860::8888 53 fd00::1 80 ff02::fb 5353".split()


@test(id="NET-01")
def with_no_rule_there_is_no_network(place):
    services = Services()
    try:
        for without in (None, "seccomp", "landlock", "capabilities"):
            report = attack(place, "network", *services.targets, *ELSEWHERE, without=without)
            reached = [step for step in report.worked() if not step.startswith(("2:127.0.0.1:", "2:::1:"))]  # a datagram to its own loopback goes nowhere
            equal(reached, [], f"addresses that answered without {without}")
            equal(services.count(), 0, f"arrivals without {without}")
        equal(place.run("cat", "/etc/resolv.conf").code, 0)
        control = attack(place, "network", *services.targets, without="network")
        control_fires(services.count() >= 2, control.chk)
    finally:
        services.close()


main()
