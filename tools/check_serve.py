#!/usr/bin/env python3
"""Checks `onebit serve` from outside: other programs' clients, speed, and load with bad clients.

  check_serve.py PROGRAM MODEL_FOLDER TEXTS.txt clients speed first load [--minutes 10]
                 [--compute bf16]
      (clients: pip install openai langchain-huggingface langchain-openai
                llama-index-embeddings-text-embeddings-inference)

MODEL_FOLDER is a sentence model, such as all-MiniLM-L6-v2 (check_sentence_vectors.py says where it
is). TEXTS has one text in each line. Every answer is compared with `onebit embed encode`.

clients  the packages' own clients, in each of their forms: values within 1e-6
speed    latency of one client and throughput of 1 to 32 clients, one text in each request, beside
         `embed encode` on the same texts. Use an idle machine
first    latency of the first 500 requests after a start, one text of any length in each, without and
         with --warm-up, in turns. Use an idle machine
load     64 clients with 1 to 32 texts in each request, beside clients that are killed, read slowly,
         or send half a request. Every answer is right (1e-5), memory and descriptors stay, the
         metrics add up, and SIGTERM at the end loses no answer
"""
import argparse
import json
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy

NAME = "search"


class Server:
    """A process of `onebit serve` with one model, on a free port."""

    def __init__(self, given, *options):
        command = [given.program, "serve", "--model", f"{NAME}={given.model}", "--port", "0",
                   "--threads", "1", "--device", "cpu", "--compute", given.compute, *options]
        begin = time.monotonic()
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.match(r"serving on (http:.*:(\d+))$", line.strip())
            if found:
                self.url, self.port = found[1], int(found[2])
                break
        else:
            sys.exit(f"the server ended with {self.process.wait()}")
        self.started = time.monotonic() - begin
        threading.Thread(target=self.show_log, daemon=True).start()

    def show_log(self):
        for line in self.process.stderr:
            print("  server:", line.strip(), flush=True)

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.expect_end()

    def expect_end(self):
        status = self.process.wait(timeout=600)
        assert status == 0, f"the server ended with {status}"

    def memory_mib(self):
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(re.search(r"VmRSS:\s+(\d+) kB", text)[1]) / 1024

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Connection:
    """A client that does no more than needed, so that it takes little of the processors."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        self.send = self.socket.sendall

    def receive(self):
        """Returns the status and the body. Status 0: the connection was closed."""
        if not (first := self.file.readline()):
            return 0, b""
        head = b"".join(iter(self.file.readline, b"\r\n"))
        length = re.search(rb"(?im)^content-length:\s*(\d+)", head)
        return int(first.split()[1]), self.file.read(int(length[1]) if length else 0)

    def ask(self, text):
        self.send(text)
        return self.receive()

    def kill(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.file.close()
        self.socket.close()


def post(path, body):
    data = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(data)}\r\n\r\n").encode() + data


def get(path):
    return f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()


def encode(given, texts):
    """The vectors of `embed encode`, and its wall time without a run of one text."""
    with tempfile.TemporaryDirectory() as folder:
        def run(lines):
            source, output = Path(folder) / "texts.txt", Path(folder) / "vectors.npy"
            source.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
            begin = time.monotonic()
            subprocess.run([given.program, "embed", "encode", "--model", given.model, "--input",
                            source, "--output", output, "--normalize", "--device", "cpu",
                            "--threads", "1", "--compute", given.compute],
                           check=True, capture_output=True)
            return numpy.load(output), time.monotonic() - begin

        _, opening = run(texts[:1])
        vectors, seconds = run(texts)
    return vectors, seconds - opening


def check_values(name, found, wanted, most):
    found = numpy.asarray(found, dtype=numpy.float64)
    assert found.shape == wanted.shape, f"{name}: {found.shape} instead of {wanted.shape}"
    difference = numpy.abs(found - wanted).max()
    print(f"  {name}: {len(found)} texts, largest difference {difference:.1e}", flush=True)
    assert difference <= most, name


def check_clients(given, texts):
    from huggingface_hub import InferenceClient
    from langchain_huggingface import HuggingFaceEndpointEmbeddings
    from langchain_openai import OpenAIEmbeddings
    from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference
    from openai import NotFoundError, OpenAI, UnprocessableEntityError
    texts = texts[:32]
    wanted, _ = encode(given, texts)
    server = Server(given)
    # Clients normalize once more, or go through Python's floats: not bit for bit.
    most = 1e-6 if given.compute == "f32" else 1e-2
    client = OpenAI(base_url=server.url + "/v1", api_key="none", max_retries=0)
    for encoding in ("float", "base64"):
        reply = client.embeddings.create(model=NAME, input=texts, encoding_format=encoding)
        data = [one.embedding for one in reply.data]
        if encoding == "base64":
            import base64
            data = [numpy.frombuffer(base64.b64decode(one), numpy.float32) for one in data]
        check_values(f"openai, {encoding}", data, wanted, most)
    # Without a choice the package asks for base64 and decodes it.
    reply = client.embeddings.create(model=NAME, input=texts[0])
    check_values("openai", [reply.data[0].embedding], wanted[:1], most)
    assert reply.usage.total_tokens > 0 and reply.model == NAME
    assert [one.id for one in client.models.list()] == [NAME]
    for error, arguments in ((NotFoundError, {"model": "other", "input": "a"}),
                             (UnprocessableEntityError, {"model": NAME, "input": ["a"] * 33})):
        try:
            assert not client.embeddings.create(**arguments), error
        except error as problem:
            print(f"  openai, {error.__name__}: {problem}")
    client = InferenceClient(server.url)
    check_values("huggingface_hub", client.feature_extraction(texts), wanted, most)
    # Version 1 refuses addresses as `model`.
    chain = HuggingFaceEndpointEmbeddings(model="any/model")
    chain.client = client
    check_values("langchain-huggingface, documents", chain.embed_documents(texts), wanted, most)
    check_values("langchain-huggingface, query", [chain.embed_query(texts[0])], wanted[:1], most)
    chain = OpenAIEmbeddings(base_url=server.url + "/v1", api_key="none", model=NAME,
                             check_embedding_ctx_length=False)
    check_values("langchain-openai", chain.embed_documents(texts), wanted, most)
    index = TextEmbeddingsInference(base_url=server.url, model_name=NAME, embed_batch_size=10)
    check_values("llama-index, documents", index.get_text_embedding_batch(texts), wanted, most)
    check_values("llama-index, query", [index.get_query_embedding(texts[0])], wanted[:1], most)
    server.end()


def check_speed(given, texts):
    server = Server(given)
    print(f"  start to the first answer {server.started:.2f} s")
    requests = [post("/embed", {"inputs": text}) for text in texts]

    def ask_all(clients):
        times = []

        def run(first):
            connection = Connection(server.port)
            mine = []
            for request in requests[first::clients]:
                begin = time.monotonic()
                status, _ = connection.ask(request)
                mine.append(time.monotonic() - begin)
                assert status == 200
            times.extend(mine)

        begin = time.monotonic()
        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(run, range(clients)))
        seconds = time.monotonic() - begin
        p50, p99 = numpy.percentile(times, [50, 99]) * 1e3
        return len(times) / seconds, p50, p99

    ask_all(1)
    print("  clients   texts/s    p50 ms    p99 ms   of embed encode")
    for clients in (1, 4, 8, 32):
        _, seconds = encode(given, texts)
        rate, p50, p99 = ask_all(clients)
        print(f"  {clients:7d} {rate:9.0f} {p50:9.2f} {p99:9.2f} {rate * seconds / len(texts):17.2f}",
              flush=True)
    print(f"  memory {server.memory_mib():.0f} MiB")
    server.end()


def check_first(given, texts):
    words = " ".join(texts).split()
    print("             start s    p50 ms    p99 ms   slowest")
    for turn in range(6):
        choice, times = random.Random(turn // 2), []
        server = Server(given, *["--warm-up"][:turn % 2])
        ask = Connection(server.port).ask
        for _ in range(500):
            first = choice.randrange(len(words))
            text = post("/embed", {"inputs": " ".join(words[first:first + choice.randint(1, 200)])})
            begin = time.monotonic()
            assert ask(text)[0] == 200
            times.append((time.monotonic() - begin) * 1e3)
        figures = [server.started, *numpy.percentile(times, [50, 99, 100])]
        print(f"  {'warm' if turn % 2 else 'cold':8s}", *(f"{one:9.2f}" for one in figures), flush=True)
        server.end()


class Load:
    CLIENTS = 64

    def __init__(self, given, texts):
        self.given, self.texts = given, texts
        self.wanted, _ = encode(given, texts)
        # All that is asked for at the end is answered, however slow the machine.
        self.server = Server(given, "--grace", "600")
        self.ends = threading.Event()  # no request begins after it
        self.lock = threading.Lock()
        self.counts = {"answered": 0, "texts": 0, "killed": 0, "slow": 0, "half": 0}
        self.problems = []

    def count(self, name, number=1):
        with self.lock:
            self.counts[name] += number

    def request(self, choice, most=32):
        chosen = [choice.randrange(len(self.texts)) for _ in range(choice.randint(1, most))]
        return chosen, post("/embed", {"inputs": [self.texts[i] for i in chosen]})

    def check(self, chosen, status, body):
        assert status == 200, f"status {status}: {body[:200]}"
        vectors = numpy.array(json.loads(body))
        difference = numpy.abs(vectors - self.wanted[chosen]).max()
        assert difference <= (1e-5 if self.given.compute == "f32" else 2e-2), difference
        self.count("answered")
        self.count("texts", len(chosen))

    def good(self, seed):
        choice = random.Random(seed)
        connection = Connection(self.server.port)
        while not self.ends.is_set():
            chosen, text = self.request(choice)
            self.check(chosen, *connection.ask(text))

    def slow(self, seed):
        choice = random.Random(seed)
        while not self.ends.is_set():
            chosen, text = self.request(choice, 8)
            connection = Connection(self.server.port)
            for begin in range(0, len(text), 400):
                connection.send(text[begin:begin + 400])
                time.sleep(0.01)
            time.sleep(0.5)
            self.check(chosen, *connection.receive())
            self.count("slow")

    def killed(self, seed):
        choice = random.Random(seed)
        while not self.ends.is_set():
            connection = Connection(self.server.port)
            connection.send(self.request(choice)[1])
            time.sleep(choice.random() * 0.2)
            connection.kill()
            self.count("killed")
            time.sleep(choice.random())

    def half(self, seed):
        choice = random.Random(seed)
        while not self.ends.is_set():
            text = self.request(choice)[1]
            status, _ = Connection(self.server.port).ask(text[:choice.randrange(1, len(text))])
            assert status == 408, status
            self.count("half")

    def guarded(self, run, seed):
        try:
            run(seed)
        except Exception as problem:  # reported, and fails the check
            with self.lock:
                self.problems.append(f"{run.__name__}: {type(problem).__name__}: {problem}")
            self.ends.set()

    def watch(self, seconds):
        """Returns the memory and the descriptors at each tenth of the time."""
        samples = []
        for _ in range(10):
            if self.ends.wait(seconds / 10):
                break
            samples.append((self.server.memory_mib(), self.server.descriptors()))
            print(f"  {self.counts}, {samples[-1][0]:.0f} MiB, {samples[-1][1]} descriptors",
                  flush=True)
        return samples

    def check_metrics(self):
        connection = Connection(self.server.port)
        deadline = time.monotonic() + 30
        while True:  # requests of killed clients end a moment later
            text = connection.ask(get("/metrics"))[1].decode()
            values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#")
            if values["te_queue_size"] == "0" or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        number = {name: float(value) for name, value in values.items()}
        total = number['te_request_count{endpoint="/embed"}']
        success = number['te_request_success{endpoint="/embed"}']
        failures = {name: value for name, value in number.items() if "failure" in name}
        print(f"  metrics: {total:.0f} requests, {success:.0f} answered, {failures}")
        assert total == success + sum(failures.values())
        assert self.counts["answered"] <= success <= self.counts["answered"] + self.counts["killed"]
        assert number["te_request_duration_count"] == success
        assert number["te_queue_size"] == 0

    def run(self):
        kinds = [self.good] * self.CLIENTS + [self.slow] * 4 + [self.killed] * 4 + [self.half] * 2
        threads = [threading.Thread(target=self.guarded, args=(kind, seed))
                   for seed, kind in enumerate(kinds)]
        for thread in threads:
            thread.start()
        samples = self.watch(60 * self.given.minutes)
        self.ends.set()
        for thread in threads:
            thread.join()
        assert not self.problems, self.problems
        self.check_metrics()
        growth = max(samples[5:])[0] - samples[2][0]
        print(f"  memory from {samples[2][0]:.1f} to at most {max(samples[5:])[0]:.1f} MiB")
        assert growth < 8, f"memory grew by {growth:.1f} MiB"
        self.check_end()

    def check_end(self):
        """SIGTERM while every client waits for an answer."""
        choice = random.Random(1)
        asked = []
        for _ in range(self.CLIENTS):
            connection = Connection(self.server.port)
            chosen, text = self.request(choice)
            connection.send(text)
            asked.append((connection, chosen))
        time.sleep(0.1)
        self.server.process.send_signal(signal.SIGTERM)
        for connection, chosen in asked:
            self.check(chosen, *connection.receive())
        self.server.expect_end()
        print(f"  SIGTERM: {len(asked)} of {len(asked)} answers, status 0")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = {"clients": check_clients, "speed": check_speed, "first": check_first,
             "load": lambda *both: Load(*both).run()}
    for name in ("program", "model", "texts"):
        parser.add_argument(name, type=Path)
    parser.add_argument("parts", nargs="+", choices=parts)
    parser.add_argument("--minutes", type=float, default=10, help="of load")
    parser.add_argument("--compute", choices=["f32", "bf16", "int8"], default="f32")
    given = parser.parse_args()
    texts = given.texts.read_text(encoding="utf-8").splitlines()
    for part in given.parts:
        print(f"{part}:", flush=True)
        parts[part](given, texts)


if __name__ == "__main__":
    main()
