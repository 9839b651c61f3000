#!/usr/bin/env bash
# What the presets bring, in real microVMs: python with pip and venv, node with npm; packages from this
# machine and from a registry on its loopback. Needs no other network.
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

# Two packages of a small registry, one of which needs the other.
mkdir "$work/registry" "$work/pack"
sha512_base64() {
    python3 -c 'import base64, hashlib, sys
print(base64.b64encode(hashlib.sha512(open(sys.argv[1], "rb").read()).digest()).decode())' "$1"
}
publish() { # publish NAME DEPENDENCIES SCRIPT
    local folder=$work/pack/package
    rm -rf "$folder"
    mkdir "$folder"
    echo "$3" >"$folder/index.js"
    jq -n --arg name "$1" --argjson needs "$2" \
        '{name: $name, version: "1.0.0", dependencies: $needs}' >"$folder/package.json"
    tar -czf "$work/registry/$1.tgz" -C "$work/pack" package
    jq --arg tarball "http://10.0.2.2:4873/$1.tgz" \
        --arg sum "sha512-$(sha512_base64 "$work/registry/$1.tgz")" \
        '{name, "dist-tags": {latest: .version},
          versions: {(.version): (. + {dist: {tarball: $tarball, integrity: $sum}})}}' \
        "$folder/package.json" >"$work/registry/$1"
}
publish first '{"second": "^1.0.0"}' 'module.exports = "first of " + require("second");'
publish second '{}' 'module.exports = "two";'
python3 -m http.server --bind 127.0.0.1 --directory "$work/registry" 4873 >"$work/registry.log" 2>&1 &
registry=$!
# shellcheck disable=SC2317 # called through eventually
registry_answers() { (exec 7<>/dev/tcp/127.0.0.1/4873) 2>/dev/null; }
ok "the registry is there" eventually 20 registry_answers

SANDBOX_SECTION='qemu: {host_ports: [4873]}'
start sandbox-qemu "default_memory_mb: 512" "auto_install: false" \
    "cache_dir: ${SANDBOX_TEST_CACHE:-/var/cache/iii-sandbox}"
sed -i 's/image_allowlist: .*/image_allowlist: [python, node]/' "$work/config.yaml"
stop_router
start_router "$work/config.yaml" listening bound

# guest SANDBOX COMMAND: the last line of what a shell in it says; all of it when it fails.
guest() {
    iii trigger --timeout-ms 300000 sandbox::exec "sandbox_id=$1" timeout_ms=290000 \
        "env=$environment" cmd=sh "args=$(jq -nc --arg command "set -e; $2" '["-c", $command]')" |
        jq -r 'if .exit_code == 0 then .stdout | rtrimstr("\n") | split("\n") | last
               else .stdout + .stderr end'
}
environment='{"npm_config_registry":"http://10.0.2.2:4873","npm_config_update_notifier":"false"}'

node=$(iii trigger --timeout-ms 120000 sandbox::create image=node network=true | jq -r .sandbox_id)
like "node boots" "$node" '^[0-9a-f-]{36}$'
like "npm runs" "$(guest "$node" 'npm --version')" '^[0-9]+\.[0-9]+\.[0-9]+$'
is "npm init" "$(guest "$node" 'mkdir /srv/app; cd /srv/app; npm init -y >/dev/null; node -p "require(\"./package.json\").name"')" app
is "npm install of a folder, without a registry" "$(guest "$node" 'mkdir /srv/own; cd /srv/own
    echo "{\"name\":\"own\",\"version\":\"1.0.0\"}" >package.json; echo "module.exports = 7" >index.js
    cd /srv/app; npm install --offline --no-audit /srv/own; node -p "require(\"own\")"')" 7
is "npm install of an archive" "$(guest "$node" 'cd /srv/own; npm pack >/dev/null; cd /srv/app
    npm uninstall own; npm install --offline --no-audit /srv/own/own-1.0.0.tgz; node -p "require(\"own\")"')" 7
is "npm install from a registry, with what a package needs" \
    "$(guest "$node" 'cd /srv/app; npm install --no-audit first; node -p "require(\"first\")"')" "first of two"
is "npm ci" "$(guest "$node" 'cd /srv/app; rm -r node_modules; npm ci --no-audit; node -p "require(\"first\")"')" "first of two"
iii sandbox stop "$node" >/dev/null

environment='{"PIP_NO_INDEX":"1"}'
python=$(iii trigger --timeout-ms 120000 sandbox::create image=python | jq -r .sandbox_id)
like "python boots" "$python" '^[0-9a-f-]{36}$'
like "pip runs" "$(guest "$python" 'pip --version')" '^pip [0-9]'
is "a virtual environment, and a package of a folder in it" "$(guest "$python" 'mkdir -p /srv/own/own; cd /srv
    echo "answer = 42" >own/own/__init__.py
    echo "from setuptools import setup; setup(name=\"own\", version=\"1\", packages=[\"own\"])" >own/setup.py
    python3 -m venv v; v/bin/pip install ./own; v/bin/python -c "import own; print(own.answer)"')" 42
is "which is not seen outside" "$(guest "$python" 'python3 -c "import own" 2>/dev/null || echo no')" no
iii sandbox stop "$python" >/dev/null
kill "$registry"
finish
