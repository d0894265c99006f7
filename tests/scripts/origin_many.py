"""A thousand feeds of one origin are asked for the first time in ten seconds: every client gets the gateway's feed in the end
and what the site has before that, the origin is asked politely, and memory is bounded."""

import collections
import concurrent.futures
import threading
import time

import origin_crawl
import origin_feeds
import origin_stage as lab
import origin_streams

FEEDS, CLIENTS, SECONDS = 1_000, 50, 10
# How many clients ask for the same feed at the same time.
TOGETHER = 2
# How long the origin thinks, and how long all of it may take, in seconds.
DELAY, WITHIN = 0.05, 300
# The most requests that an origin may have at the same time: those of the clients where they are passed through, a
# few of the gateway's own where they are not. And the most for one feed in all: the gateway's look and a poll, and those of
# the clients until it is made.
IN_FLIGHT, FOR_EACH = {True: CLIENTS + 8, "redirect": 8}, {True: 12, "redirect": 2}
# By how much memory may grow, in bytes: for each feed, and for what is there once.
FOR_A_FEED, ONCE = 64 << 10, 32 << 20
# How soon a client asks again, in seconds.
AGAIN = 1


class Counting(lab.Origin):
    """An origin of many feeds, which counts."""

    def __init__(self):
        super().__init__()
        self.lock, self.now, self.most = threading.Lock(), 0, 0
        self.asked, self.times = collections.Counter(), []
        for n in range(FEEDS):
            self.answers[f"/feed-{n}.xml"] = self.feed

    def feed(self, wire, message):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.asked[message.target] += 1
            self.times.append(time.monotonic())
        time.sleep(DELAY)
        body = origin_feeds.document(message.target[1:-4])
        # It is over once it is answered, not when the next request is here.
        with self.lock:
            self.now -= 1
        wire.connection.sendall(lab.reply(body, headers=["Content-Type: application/atom+xml"]))
        return True


def client(gate, number, began):
    """Asks for its share of the feeds, evenly within the time, and for each until it is there: what came, in order."""
    share = range(number // TOGETHER, FEEDS, CLIENTS // TOGETHER)
    waiting = [(began + SECONDS * place / len(share), n) for place, n in enumerate(share)]
    answers = {n: [] for n in share}
    while waiting and time.monotonic() < began + WITHIN:
        waiting.sort()
        due, n = waiting.pop(0)
        time.sleep(max(0, due - time.monotonic()))
        asked = time.monotonic()
        # One client may have so many feeds made in an hour, so that each feed is asked for from elsewhere.
        whom = [f"X-Forwarded-For: 198.18.{n // 250}.{n % 250 + 1}"]
        answer = lab.ask(gate.base, f"/feed-{n}.xml", headers=whom, wait=60)
        answers[n].append((answer, time.monotonic() - asked))
        if not is_made(answer):
            waiting.append((time.monotonic() + AGAIN, n))
    return answers


def is_made(answer):
    return answer.status == 200 and origin_crawl.is_enriched(answer, "atom")


def judged(answers, before):
    """What is wrong with the answers for one feed. `before`: the status of those before it is made."""
    for n, each in answers.items():
        statuses = [answer.status for answer, _ in each]
        if not each or not is_made(each[-1][0]) or set(statuses[:-1]) - {before}:
            yield f"feed {n} was answered {statuses}"
            continue
        found = origin_crawl.ids(each[-1][0].body, "atom")
        if [entry for entry, _ in found] != [f"urn:feed-{n}:2", f"urn:feed-{n}:1"]:
            yield f"feed {n} has the ids {found}"


def run(given, folder):
    for passes, most in IN_FLIGHT.items():
        yield from (f"pass = {passes}: {fault}" for fault in asked_for(given, folder / str(passes), passes, most))


def asked_for(given, folder, passes, most):
    site, gate = Counting(), None
    try:
        gate = lab.gateway(
            given.bin,
            folder,
            lab.origin(f"{site.base}/", feeds=FEEDS, **{"pass": passes}),
            'trusted_proxies = ["127.0.0.1"]',
        )
        lab.ask(gate.base, "/feed-0.xml")
        began = time.monotonic()
        with origin_streams.Peak(gate.process) as peak, concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            made = [pool.submit(client, gate, number, began) for number in range(CLIENTS)]
            results = [each.result() for each in made]
        taken = time.monotonic() - began
        times, early = [], 0
        for answers in results:
            yield from judged(answers, 307 if passes == "redirect" else 200)
            for each in answers.values():
                times += [seconds for _, seconds in each]
                early += len(each) - 1
        times.sort()
        counts = collections.Counter(site.asked.values())
        a_second = max(collections.Counter(int(moment - began) for moment in site.times).values())
        known = sum(url.startswith(f"{site.base}/feed-") for url in lab.known_feeds(gate))
        p50, p99 = (times[len(times) * part // 100] * 1000 for part in (50, 99))
        print(
            f"pass = {passes}: {FEEDS} feeds, each asked for by {TOGETHER} clients: all there after {taken:.0f} s\n"
            f"  {early} answers were the site's own; an answer took {p50:.0f} ms, p99 {p99:.0f} ms, "
            f"at most {times[-1] * 1000:.0f} ms\n"
            f"  the origin had {site.most} requests at the same time, at most {a_second} in a second, and for a feed "
            f"{dict(counts)} (requests: feeds); {known} feeds are known\n"
            f"  memory {peak.before >> 20} MB before, {peak.most >> 20} MB at most, "
            f"{origin_streams.resident(gate.process) >> 20} MB after"
        )
        if site.most > most:
            yield f"the origin had {site.most} requests at the same time"
        if max(counts) > FOR_EACH[passes]:
            yield f"for one feed the origin had {max(counts)} requests"
        if known != FEEDS:
            yield f"{known} feeds are known of {FEEDS}"
        if peak.growth > FEEDS * FOR_A_FEED + ONCE:
            yield f"memory grew by {peak.growth >> 20} MB"
        yield from no_more(gate, site, passes)
    finally:
        if gate:
            gate.end()
        site.end()


def no_more(gate, site, passes):
    """One more than the origin may have: it is passed through, or is at the origin, and is no feed."""
    site.answers["/one-more.xml"] = lab.reply(
        origin_feeds.document("more"), headers=["Content-Type: application/atom+xml"]
    )
    answer = lab.ask(gate.base, "/one-more.xml")
    time.sleep(1)
    if answer.status != (307 if passes == "redirect" else 200) or passes is True and b"urn:more:1" not in answer.body:
        yield f"one feed more than the limit is answered {answer.status} {answer.body[:200]}"
    if f"{site.base}/one-more.xml" in lab.known_feeds(gate):
        yield "one feed more than the limit became one"
