#!/usr/bin/env bash
# Wrong input at every door gives one clear line, or the contract's error.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# refused TEXT REGEX ARGUMENT...: the router ends non-zero with one line that matches.
refused() {
    local text=$1 regex=$2 out code
    shift 2
    out=$(timeout 20 sandbox-router "$@" 2>&1 >/dev/null)
    code=$?
    ok "$text: exits non-zero" test "$code" -ne 0 -a "$code" -ne 124
    like "$text: says why" "$out" "$regex"
    is "$text: in one line" "$(printf '%s\n' "$out" | grep -vc 'level=info')" 1
}
config() {
    cat >"$work/config.yaml"
}

refused "no --config" 'config'
refused "no such file" '/nonexistent/file.yaml' --config /nonexistent/file.yaml
config <<<'sandbox: {adaptor: x}'
refused "an unknown key" 'config.yaml:1.*adaptor' --config "$work/config.yaml"
config <<<'sandbox: [not a map'
refused "bad YAML" 'config.yaml:[0-9]' --config "$work/config.yaml"
config <<<$'sandbox:\n  managed: maybe'
refused "a wrong type" 'config.yaml:2.*managed' --config "$work/config.yaml"
config <<<$'sandbox:\n  auto_install: true'
refused "an adapter setting in the wrong place" 'config.yaml:2.*sandbox\.settings' --config "$work/config.yaml"
config <<<$'sandbox:\n  settings:\n    default_memory_mb: 64'
refused "a value out of range" 'config.yaml:3.*default_memory_mb' --config "$work/config.yaml"
config <<<$'sandbox: {}\nengine: {sandbox: {}}'
refused "keys in both places" 'engine' --config "$work/config.yaml"
config <<<$'sandbox:\n  listen: ["0.0.0.0:4000"]'
refused "listening beyond loopback without a token" 'auth_token_file' --config "$work/config.yaml"

start sandbox-mock
cat >"$work/second.yaml" <<YAML
sandbox:
  runtime_dir: $work/run2
YAML
refused "a port in use" '49134' --config "$work/second.yaml"
cat >"$work/third.yaml" <<YAML
sandbox:
  runtime_dir: $work/run
  listen: ["127.0.0.1:0"]
YAML
refused "a runtime directory in use" "$work/run" --config "$work/third.yaml"

# A second adapter of the same name while the first answers: refused, the first stays bound.
SANDBOX_ROUTER=ipc://$work/run/router.sock timeout 10 sandbox-mock --config "$work/config.yaml" 2>"$work/second.log"
ok "a second adapter says why it is not wanted" grep -q 'event=' "$work/second.log"
sandbox-mock --config "$work/config.yaml" --router nowhere >"$work/out" 2>&1
is "a router that is no URL: usage error" "$?" 2
like "and it is shown" "$(cat "$work/out")" 'ipc:///PATH.*nowhere'
is "the first stays bound" "$(iii trigger sandbox::adapter::info | jq -r .status)" bound

like "an image that is not allowed" "$(iii trigger sandbox::create image=node 2>&1)" '"code": "S100"'
like "malformed JSON on the command line" "$(iii trigger sandbox::list --json '{' 2>&1)" '^Error: '
like "a word without =" "$(iii trigger sandbox::list nonsense 2>&1)" 'nonsense'
like "an unknown function" "$(iii trigger sandbox::lst 2>&1)" 'function_not_found'
like "a missing field" "$(iii trigger sandbox::create 2>&1)" '"code": "S001"'
iii trigger --port 1 sandbox::list >"$work/out" 2>&1
is "no router: exit code" "$?" 1
like "no router: names address and port" "$(cat "$work/out")" 'localhost.*1'
iii trigger >/dev/null 2>&1
is "no function: usage error" "$?" 2
iii no-such-command >/dev/null 2>&1
is "no such command: usage error" "$?" 2
is "and all the time the router serves" "$(iii trigger sandbox::list)" "[]"
finish
