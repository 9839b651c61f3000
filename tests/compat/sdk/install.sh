#!/usr/bin/env bash
# install.sh FOLDER: puts the tested versions of iii-sdk there, each under a name of its own.
set -eu
folder=${1:?usage: install.sh FOLDER}
mkdir -p "$folder"
cd "$folder"
[ -f package.json ] || echo '{"private": true}' >package.json
for version in 0.2.1 0.3.0 0.9.0 0.11.2 0.11.6 0.22.0 0.22.1; do
    npm install --no-audit --no-fund "sdk-$version@npm:iii-sdk@$version"
done
