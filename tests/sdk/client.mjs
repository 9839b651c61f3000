// client.mjs - one way to use each published version of iii-sdk, unmodified.

export const versions = ['0.2.1', '0.3.0', '0.9.0', '0.11.2', '0.11.6', '0.22.1']

const atLeast = (version, wanted) => {
  const [a, b] = [version, wanted].map((text) => text.split('.').map(Number))
  for (let i = 0; i < 3; i++) if (a[i] !== b[i]) return a[i] > b[i]
  return true
}

// connect(version, url): { call, code, channels, shutdown } of that version.
export async function connect(version, url) {
  const name = `iii-sdk-${version}`
  const sdk = await import(name)
  const options = { workerName: 'sdk-test', reconnectionConfig: { initialDelayMs: 100, maxDelayMs: 500 } }
  if (!atLeast(version, '0.9.0')) {
    const iii = sdk.init(url, options)
    return { version, call: (id, data) => iii.call(id, data), shutdown: () => iii.shutdown() }
  }
  const iii = sdk.registerWorker(url, options)
  const helpers = atLeast(version, '0.22.0') ? await import(`${name}/helpers`) : null
  const channel = atLeast(version, '0.22.0') ? await import(`${name}/channel`) : sdk
  return {
    version,
    call: (id, payload, action) => iii.trigger({ function_id: id, payload, action }),
    void: sdk.TriggerAction.Void,
    enqueue: sdk.TriggerAction.Enqueue,
    createChannel: () => (helpers ? helpers.createChannel(iii) : iii.createChannel()),
    reader: (ref) => new channel.ChannelReader(url, ref),
    shutdown: () => iii.shutdown(),
  }
}

// The S-code of a rejection, whichever shape this version gives it.
export const codeOf = (error) => error.code ?? error.body?.code

// The whole envelope: flat in old versions, JSON in the message since 0.11.6.
export function envelopeOf(error) {
  const text = String(error.message ?? '')
  return JSON.parse(text.slice(text.indexOf('{')))
}
