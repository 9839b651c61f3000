#!/usr/bin/env bash
# The npm versions of iii-sdk that the wire specification names, unmodified, against router and mock.
# They are not part of the tree: SANDBOX_SDK_DIR is a folder where tests/compat/sdk/install.sh was run.
: "${SANDBOX_SDK_DIR:=}"
if [ ! -d "$SANDBOX_SDK_DIR/node_modules" ] || ! command -v node >/dev/null; then
    echo "1..0 # SKIP needs node and SANDBOX_SDK_DIR (tests/compat/sdk/install.sh)"
    exit 77
fi
# shellcheck source-path=SCRIPTDIR source=../../integration/lib.sh
. "$(dirname "$0")/../../integration/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)

start sandbox-mock
for folder in "$SANDBOX_SDK_DIR"/node_modules/sdk-*; do
    version=${folder##*/sdk-}
    ok "iii-sdk $version" node "$here/sdk.mjs" "$SANDBOX_SDK_DIR" "$version" ws://localhost:49134
done
ok "iii-sdk 0.22.1 comes back after a broken connection, and its reader may pause" \
    node "$here/sdk_reconnect.mjs" "$SANDBOX_SDK_DIR" 0.22.1 ws://127.0.0.1:49134
finish
