// sdk.mjs - what an unmodified iii-sdk from npm sees of the router (iii-wire 7, 9).
//
//   node sdk.mjs FOLDER VERSION URL
//
// FOLDER holds node_modules/sdk-VERSION (npm install sdk-VERSION@npm:iii-sdk@VERSION). URL is a router
// with an adapter that serves the image `python`. Prints one line a check; exits with 1 after a
// failed one, and must exit by itself: an SDK that is not let go keeps its process alive.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [folder, version, url] = process.argv.slice(2);
const require = createRequire(resolve(folder, "package.json"));
const load = (part) => import(pathToFileURL(require.resolve(`sdk-${version}${part}`)).href);
const order = (text) => text.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
const since = (other) => order(version) >= order(other);

let failures = 0;
function is(name, got, wanted) {
    const same = JSON.stringify(got) === JSON.stringify(wanted);
    if (!same) failures++;
    console.log(`${same ? "ok" : "not ok"} - ${name}`);
    if (!same) console.log(`#   got:    ${JSON.stringify(got)}\n#   wanted: ${JSON.stringify(wanted)}`);
}
async function error(promise) {
    try {
        return { resolved: await promise };
    } catch (e) {
        return e;
    }
}
// The S-code's envelope, in the form that this version's errors have.
function envelope(e) {
    return JSON.parse(e.message.slice(e.message.indexOf("{")));
}

const sdk = await load("");
const worker = since("0.9.0") ? sdk.registerWorker(url, { workerName: "probe" }) : sdk.init(url);
const call = (function_id, payload, more = {}) =>
    since("0.9.0") ? worker.trigger({ function_id, payload, ...more }) : worker.call(function_id, payload);

// Calls and errors.
const listed = await call("sandbox::list", {});
is("list is an array", Array.isArray(listed), true);
const { sandbox_id } = await call("sandbox::create", { image: "python" });
is("create gives an id", typeof sandbox_id, "string");
const ran = await call("sandbox::exec", { sandbox_id, cmd: "echo", args: ["h\u00e9 \u{1F600}"] });
is("exec gives the output", ran.stdout, "h\u00e9 \u{1F600}\n");

const missing = await error(call("sandbox::fs::stat", { sandbox_id, path: "/nowhere" }));
is("an S-code is the error's code", missing.code, "S211");
is("its message carries the envelope", envelope(missing).type, "filesystem");
if (!since("0.11.6")) is("old versions reject with the flat error", missing.type, "filesystem");
if (since("0.11.6")) is("new ones reject with an Error", missing instanceof Error, true);
is("an unknown function", (await error(call("no::such", {}))).code, "function_not_found");

const many = await Promise.all(Array.from({ length: 500 }, () => call("sandbox::list", {})));
is("500 calls in flight", many.length, 500);

const size = 3 * 1024 * 1024;
const big = await call("sandbox::exec", { sandbox_id, argv: ["head", "-c", String(size), "/dev/zero"] });
is("a large result is cut and says so", [big.stdout_truncated, big.stdout.length], [true, 1048576]);

if (since("0.9.0")) {
    const none = await call("sandbox::list", {}, { action: sdk.TriggerAction.Void() });
    is("void resolves at once", none ?? null, null);
    const queued = await error(call("sandbox::list", {}, { action: sdk.TriggerAction.Enqueue({ queue: "q" }) }));
    is("enqueue is refused", queued.code, "enqueue_error");
    const late = await error(
        call("sandbox::exec", { sandbox_id, cmd: "sleep", args: ["20"] }, { timeoutMs: 300 }),
    );
    is("the client's own timeout", since("0.11.6") ? late.code : String(late.message ?? late).includes("300"),
        since("0.11.6") ? "TIMEOUT" : true);
    await channels();
}

async function channels() {
    const { ChannelReader } = since("0.22.0") ? await load("/channel") : sdk;
    const create = since("0.22.0") ? (await load("/helpers")).createChannel : () => worker.createChannel();
    const write = (stream, data) => new Promise((done) => stream.write(data, done));
    const end = (stream) => new Promise((done) => stream.end(done));

    const pair = await create(worker);
    const texts = [];
    pair.reader.onMessage((text) => texts.push(text));
    const all = pair.reader.readAll();
    pair.writer.sendMessage("beside");
    await write(pair.writer.stream, Buffer.alloc(200000, 7));
    await end(pair.writer.stream);
    is("a round trip", [(await all).length, texts], [200000, ["beside"]]);

    const upload = await create(worker);
    const written = call("sandbox::fs::write", { sandbox_id, path: "/tmp/up", content: upload.readerRef });
    await write(upload.writer.stream, Buffer.alloc(5000000, 65));
    await end(upload.writer.stream);
    is("an upload", await written, { bytes_written: 5000000, path: "/tmp/up" });

    const read = await call("sandbox::fs::read", { sandbox_id, path: "/tmp/up" });
    const got = await new ChannelReader(url, read.content).readAll();
    is("a download", [read.size, got.length, got.every((byte) => byte === 65)], [5000000, 5000000, true]);
    const small = await call("sandbox::fs::write", { sandbox_id, path: "/tmp/s", content: "small" });
    is("a file as text", small.bytes_written, 5);
    is("and its body", (await call("sandbox::fs::read", { sandbox_id, path: "/tmp/s" })).body, "small");

    const broken = await create(worker);
    const aborted = error(call("sandbox::fs::write", { sandbox_id, path: "/tmp/s", content: broken.readerRef }));
    await write(broken.writer.stream, Buffer.alloc(1000, 66));
    broken.writer.stream.on("error", () => {});
    setTimeout(() => broken.writer.stream.destroy(), 200);
    const seen = await aborted;
    is("an aborted upload is S218", [seen.code, envelope(seen).retryable], ["S218", true]);
    is("and leaves the old file", (await call("sandbox::fs::read", { sandbox_id, path: "/tmp/s" })).body, "small");

    const empty = await create(worker);
    const emptied = call("sandbox::fs::write", { sandbox_id, path: "/tmp/e", content: empty.readerRef });
    empty.writer.sendMessage("");
    empty.writer.close();
    is("an empty upload that opens its socket", (await emptied).bytes_written, 0);

    const wrong = new ChannelReader(url, { channel_id: "nowhere", access_key: "none", direction: "read" });
    const refused = await error(wrong.readAll());
    is("an unknown channel is a 404", String(refused.message).includes("404"), true);
}

await call("sandbox::stop", { sandbox_id });
const began = Date.now();
if (worker.shutdown) await worker.shutdown();
process.on("exit", (code) => {
    const took = Date.now() - began;
    is("the process ends by itself soon", took < 2000, true);
    if (failures > 0) process.exitCode = 1;
});
if (!worker.shutdown) process.exit(failures > 0 ? 1 : 0); // 0.2.1 and 0.3.0 know no shutdown
