// scenario.mjs URL VERSION ROUTER-PID-FILE - what every published client must be able to do.
// Prints one `ok`/`not ok` line a check, and exits by itself after shutdown(): a client that keeps the
// process alive fails by the caller's time limit.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, codeOf, envelopeOf } from './client.mjs'

const [url, version] = process.argv.slice(2)
const UPLOAD_BYTES = 64 * 1024 * 1024
const UNKNOWN_ID = '00000000-0000-4000-8000-00000000abcd'

let failures = 0
async function check(text, body) {
  try {
    await body()
    console.log(`ok - ${version}: ${text}`)
  } catch (error) {
    failures++
    console.log(`not ok - ${version}: ${text}\n#   ${String(error.stack ?? error).replaceAll('\n', '\n#   ')}`)
  }
}

async function rejection(promise) {
  try {
    await promise
  } catch (error) {
    return error
  }
  assert.fail('the call was expected to fail')
}

const hash = (data) => createHash('sha256').update(data).digest('hex')

async function readAll(reader) {
  const chunks = []
  for await (const chunk of reader.stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const client = await connect(version, url)
const { call } = client

await check('list is an array', async () => assert.ok(Array.isArray(await call('sandbox::list', {}))))

const { sandbox_id: sandbox } = await call('sandbox::create', { image: 'python' })
await check('exec returns its output', async () => {
  const reply = await call('sandbox::exec', { sandbox_id: sandbox, argv: ['printf', 'h\u00e9llo'] })
  assert.equal(reply.stdout, 'h\u00e9llo')
  assert.equal(reply.exit_code, 0)
})
await check('an error has its code and the whole envelope', async () => {
  const error = await rejection(call('sandbox::exec', { sandbox_id: UNKNOWN_ID, cmd: 'true' }))
  assert.equal(codeOf(error), 'S002')
  const envelope = envelopeOf(error)
  assert.equal(envelope.type, 'validation')
  assert.equal(envelope.retryable, false)
  assert.ok(envelope.message.includes(UNKNOWN_ID))
})
await check('an unknown function is no S-code', async () => {
  const error = await rejection(call('sandbox::no_such', {}))
  assert.equal(codeOf(error), 'function_not_found')
})
await check('500 calls in flight', async () => {
  const replies = await Promise.all(Array.from({ length: 500 }, () => call('sandbox::list', {})))
  assert.equal(replies.filter((reply) => reply.length === 1).length, 500)
})
await check('a 1 MiB result', async () => {
  const reply = await call('sandbox::exec', {
    sandbox_id: sandbox,
    argv: ['/bin/sh', '-c', 'head -c 1048576 /dev/zero | tr "\\0" a'],
  })
  assert.equal(reply.stdout.length, 1048576)
})

if (client.void) {
  await check('a void call resolves at once and runs', async () => {
    await call('sandbox::fs::write', { sandbox_id: sandbox, path: '/tmp/void', content: 'v' }, client.void())
    for (let tries = 0; tries < 100; tries++) {
      const found = await call('sandbox::fs::stat', { sandbox_id: sandbox, path: '/tmp/void' }).catch(() => null)
      if (found) return
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    assert.fail('the file did not appear')
  })
  await check('enqueue is refused, there is no queue', async () => {
    const error = await rejection(call('sandbox::list', {}, client.enqueue({ queue: 'q' })))
    assert.equal(codeOf(error), 'enqueue_error')
  })
}

if (client.createChannel) {
  const data = randomBytes(UPLOAD_BYTES)
  await check('64 MiB up', async () => {
    const channel = await client.createChannel()
    const answer = call('sandbox::fs::write', { sandbox_id: sandbox, path: '/tmp/up', content: channel.readerRef })
    channel.writer.stream.end(data)
    assert.deepEqual(await answer, { bytes_written: UPLOAD_BYTES, path: '/tmp/up' })
  })
  await check('64 MiB down, the same bytes', async () => {
    const reply = await call('sandbox::fs::read', { sandbox_id: sandbox, path: '/tmp/up' })
    assert.equal(reply.size, UPLOAD_BYTES)
    const back = await readAll(client.reader(reply.content))
    assert.equal(hash(back), hash(data))
  })
  await check('a text side-band between two clients', async () => {
    const channel = await client.createChannel()
    const got = new Promise((resolve) => channel.reader.onMessage(resolve))
    channel.reader.stream.resume()
    channel.writer.sendMessage('beside the data')
    assert.equal(await got, 'beside the data')
    channel.writer.close()
  })
  await check('an abort is S218 and the old file stays', async () => {
    const channel = await client.createChannel()
    const answer = rejection(
      call('sandbox::fs::write', { sandbox_id: sandbox, path: '/tmp/void', content: channel.readerRef }))
    channel.writer.stream.on('error', () => {})
    channel.writer.stream.write(randomBytes(300000), () => channel.writer.stream.destroy())
    assert.equal(codeOf(await answer), 'S218')
    const reply = await call('sandbox::fs::read', { sandbox_id: sandbox, path: '/tmp/void' })
    assert.equal(reply.body, 'v')
  })
  await check('an empty upload by an empty message', async () => {
    const channel = await client.createChannel()
    const answer = call('sandbox::fs::write', { sandbox_id: sandbox, path: '/tmp/empty', content: channel.readerRef })
    channel.writer.sendMessage('')
    channel.writer.close()
    assert.equal((await answer).bytes_written, 0)
  })
  await check('an upload that never opens its channel is S218 before the caller gives up', async () => {
    const channel = await client.createChannel()
    const answer = rejection(
      call('sandbox::fs::write', { sandbox_id: sandbox, path: '/tmp/never', content: channel.readerRef }))
    channel.writer.stream.end()
    assert.equal(codeOf(await answer), 'S218')
  })
  await check('a channel that does not exist is 404', async () => {
    const reader = client.reader({ channel_id: UNKNOWN_ID, access_key: UNKNOWN_ID, direction: 'read' })
    reader.stream.resume()
    const [error] = await once(reader.stream, 'error')
    assert.match(String(error.message), /404/)
  })
}

await check('it reconnects after a restart of the router', async () => {
  console.log('RESTART')
  await once(process.stdin, 'data')
  process.stdin.pause()
  for (let tries = 0; tries < 200; tries++) {
    const reply = await call('sandbox::adapter::info', {}).catch(() => null)
    if (reply?.status === 'bound') return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  assert.fail('no call succeeded after the restart')
})

console.log('SHUTDOWN')
await client.shutdown()
process.exitCode = failures > 0 ? 1 : 0
process.stdin.unref?.()
