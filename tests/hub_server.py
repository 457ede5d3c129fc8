"""A small local server that speaks the HuggingFace hub's download protocol.

Enough for `hf_hub_download` and for transformers: HEAD and GET of
`/{repo}/resolve/{revision}/{file}`, the redirects of renamed models and of
large files, the error codes, ranges; and for `snapshot_download`, which asks
for a list of files first. A fault can be planted on each file.
Protocol: https://huggingface.co/docs/hub/api and the source of
huggingface_hub.file_download.
"""

import contextlib
import hashlib
import http.server
import json
import re
import threading
from types import SimpleNamespace

FAULTS = {
    "truncated": "promises the whole file, sends half, closes the connection",
    "short": "sends half of the file and says in every header that this is all",
    "long": "sends more than its headers announce, and says so in the length",
    "cut": "says that the body is shorter than what it sends",
    "flipped": "sends a body of the right length with its last byte changed",
    "html": "sends a web page under the file's own headers",
    "login": "sends a web page without any of the hub's headers",
    "stalled": "sends half of the file and then nothing more",
    "silent": "never answers",
    "endless": "redirects to one new address after another",
    "elsewhere": "redirects to another host, which has other bytes",
    "gated": "403: the terms have not been accepted",
    "broken": "500",
}
PAGE = b"<!DOCTYPE html><html><body>Please log in to this network.</body></html>"


def etag_of(name, content):
    """SHA-256 of a large file, git's blob id of any other, as on the hub."""
    if name.endswith(".safetensors"):
        return hashlib.sha256(content).hexdigest()
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content).hexdigest()


def commit_of(files):
    """A commit id that depends on every file."""
    joined = "".join(f"{name} {etag_of(name, files[name])}\n" for name in sorted(files))
    return hashlib.sha1(joined.encode()).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        hub = self.server.hub
        if hub.closing.is_set():  # a connection kept from an earlier test
            self.close_connection = True
            return None
        hub.requests.append((self.command, self.path))
        path = re.sub(r"\?again=.*", "", self.path)
        listed = re.match(r"/api/models/(.+?)/(revision|tree)/", path)
        if listed is not None:
            return self.list_files(*listed.groups())
        match = re.fullmatch(r"/(.+?)/(resolve|cdn)/([^/]+)/(.+)", path)
        if match is None:
            return self.refuse(404, "EntryNotFound")
        repo, route, revision, name = match.groups()
        files = hub.repos.get(repo)
        if isinstance(files, str):
            return self.redirect(307, self.path.replace(repo, files, 1))
        if files is None:
            return self.refuse(401, "RepoNotFound")
        commit = commit_of(files)
        if revision not in ("main", commit):
            return self.refuse(404, "RevisionNotFound")
        fault = hub.faults.get(name)
        if self.headers.get("Host", "").startswith("localhost"):  # another host
            return self.send_file(files[name], "flipped", {})
        if fault in ("gated", "broken", "endless", "login", "silent"):
            return self.fail(fault)
        if name not in files:
            return self.refuse(404, "EntryNotFound", commit)
        content = files[name]
        headers = {"X-Repo-Commit": commit, "ETag": f'"{etag_of(name, content)}"'}
        headers |= hub.headers.get(name, {})
        if fault == "short":
            content = content[: len(content) // 2]
        if fault == "elsewhere":
            place = hub.url.replace("127.0.0.1", "localhost") + self.path
            return self.redirect(302, place, headers)
        if route == "resolve" and name.endswith(".safetensors"):
            headers |= {"X-Linked-ETag": headers.pop("ETag")}
            headers |= {"X-Linked-Size": str(len(content))}
            return self.redirect(302, f"{hub.url}/{repo}/cdn/{commit}/{name}", headers)
        return self.send_file(content, fault, headers)

    def list_files(self, repo, kind):
        """Answer what `snapshot_download` asks before it downloads."""
        files = self.server.hub.repos[repo]
        if kind == "tree":
            entry = {"type": "file"}
            answer = [
                entry | {"path": n, "size": len(files[n]), "oid": etag_of(n, files[n])}
                for n in files
            ]
        else:
            names = [{"rfilename": name} for name in files]
            answer = {"id": repo, "sha": commit_of(files), "siblings": names}
        body = json.dumps(answer).encode()
        return self.reply(200, {"Content-Type": "application/json"}, body)

    def fail(self, fault):
        """Answer with a fault that does not depend on the file."""
        if fault == "gated":
            return self.refuse(403, "GatedRepo")
        if fault == "broken":
            return self.refuse(500, "Oops")
        if fault == "endless":
            new = f"{self.server.hub.url}{self.path.split('?')[0]}?again="
            return self.redirect(302, f"{new}{len(self.server.hub.requests)}")
        if fault == "silent":
            self.server.hub.closing.wait(30)
            self.close_connection = True
            return None
        return self.reply(200, {"Content-Type": "text/html"}, PAGE)

    def refuse(self, status, code, commit=None):
        headers = {"X-Error-Code": code, "X-Error-Message": code}
        self.reply(status, headers | ({"X-Repo-Commit": commit} if commit else {}), b"")

    def redirect(self, status, location, headers=None):
        self.reply(status, {"Location": location} | (headers or {}), b"")

    def send_file(self, content, fault, headers):
        if fault == "html":
            content = PAGE
        if fault == "long":
            content += bytes(1000)
        if fault == "flipped":
            content = content[:-1] + bytes([content[-1] ^ 1])
        size = len(content)
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        first = int(wanted[1]) if wanted else 0
        if first:
            headers |= {"Content-Range": f"bytes {first}-{size - 1}/{size}"}
        end = size // 2 if fault in ("truncated", "stalled") else size
        body = content[first:]
        if fault == "cut":
            headers |= {"Content-Length": str(len(body) // 2)}
        self.reply(206 if first else 200, headers, body, max(end - first, 0))
        if end < size and self.command == "GET":
            self.close_connection = True
            if fault == "stalled":
                self.server.hub.closing.wait(30)

    def reply(self, status, headers, body, sent=None):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        if "Content-Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body[:sent])
            self.wfile.flush()

    def log_message(self, *arguments):
        """Keep the test output quiet."""


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, address):
        """A client that gave up on a faulty answer is no news."""


@contextlib.contextmanager
def serve(repos, faults=None):
    """Serve models until the block ends.

    Parameters
    ----------
    repos : dict
        "owner/name" -> {file name: bytes}, or the new name of a renamed model.
    faults : dict, optional
        file name -> a key of `FAULTS`; may be changed while serving.

    Yields
    ------
    namespace with `url`, `repos`, `faults`, `headers` (file name -> headers in
    place of the right ones), and `requests`, the list of (method, path) asked
    for so far.
    """
    with Server(("127.0.0.1", 0), Handler) as server:
        server.hub = SimpleNamespace(
            url=f"http://127.0.0.1:{server.server_port}",
            repos=repos,
            faults=faults or {},
            headers={},
            requests=[],
            closing=threading.Event(),
        )
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.hub
        finally:
            server.hub.closing.set()
            server.shutdown()
            thread.join()
