"""For who begins many programs, and may have been begun in the background."""
import signal


def heed():
    """Whoever is begun in the background of a script, or by nohup, is told to ignore an interrupt, and all that it starts ignores it too.
    We go on ignoring it, by a function of our own: programs that we start do not inherit that."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
