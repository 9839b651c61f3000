// reattach.mjs URL VERSION - a client whose connection breaks, and one that reads slowly.
//
// Between SDK and router stands a proxy of ours that breaks the connection on demand.
import { once } from "node:events";
import { connect, createServer } from "node:net";

const [url, version] = process.argv.slice(2);
const load = (part) => import(`iii-sdk-${version}${part}`);
const target = new URL(url);

let failures = 0;
function is(name, got, wanted) {
    const same = JSON.stringify(got) === JSON.stringify(wanted);
    if (!same) failures++;
    console.log(`${same ? "ok" : "not ok"} - ${name}${same ? "" : `: ${JSON.stringify(got)}`}`);
}

const pairs = new Set();
let sent = "";
const proxy = createServer((client) => {
    const router = connect(Number(target.port), target.hostname);
    const pair = { client, router };
    pairs.add(pair);
    client.on("data", (data) => router.write(data));
    router.on("data", (data) => client.write(data));
    router.on("data", (data) => (sent += data.toString("latin1")));
    for (const socket of [client, router]) {
        socket.on("error", () => {});
        socket.on("close", () => (client.destroy(), router.destroy(), pairs.delete(pair)));
    }
});
proxy.listen(0, "127.0.0.1");
await once(proxy, "listening");
const proxied = `ws://127.0.0.1:${proxy.address().port}`;

const { registerWorker } = await load("");
const { createChannel } = await load("/helpers");
const { ChannelReader } = await load("/channel");
const worker = registerWorker(proxied, { workerName: "breaks" });
const direct = registerWorker(url, { workerName: "watches" });
const call = (who, function_id, payload) => who.trigger({ function_id, payload });
const names = async () =>
    (await call(direct, "engine::workers::list", {})).workers.map((w) => w.name).sort();

await call(worker, "sandbox::list", {});
is("both are listed", await names(), ["breaks", "watches"]);

// The client's side breaks without a word to the router: the old connection is retired by reattach.
for (const { client, router } of pairs) {
    client.removeAllListeners("close");
    router.removeAllListeners("close");
    client.destroy();
}
await new Promise((done) => setTimeout(done, 200)); // until the SDK has noticed
is("a call made meanwhile is sent later", Array.isArray(await call(worker, "sandbox::list", {})), true);
is("the old connection is retired", await names(), ["breaks", "watches"]);

// A reader that pauses for longer than a close frame may stay unanswered still gets all.
const pair = await createChannel(direct);
const size = 26 * 1024 * 1024;
const writing = new Promise((done) => {
    pair.writer.stream.write(Buffer.alloc(size, 1), () => pair.writer.stream.end(done));
});
const reader = new ChannelReader(url, pair.readerRef);
let got = 0;
reader.stream.on("data", (data) => {
    got += data.length;
    if (got < 8 * 65536) {
        reader.stream.pause();
        setTimeout(() => reader.stream.resume(), 400);
    }
});
const ended = once(reader.stream, "end");
await writing;
reader.stream.pause();
setTimeout(() => reader.stream.resume(), 2500);
await ended;
is("a slow reader gets all", got, size);

await worker.shutdown();
await direct.shutdown();
process.exit(failures > 0 ? 1 : 0); // the SDK's telemetry still looks for the proxy
