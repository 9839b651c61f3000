#!/usr/bin/env bash
# sandbox-conformance tells wrong adapters from right ones, and its other ways to run.
# conformance.sh BUILD-FOLDER
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"

build=$1
mock=$SANDBOX_BIN/sandbox-mock

# run CODE TEXT ARGUMENT...: output in $out.
run() {
    local wanted=$1 text=$2 code
    shift 2
    timeout 150 sandbox-conformance "$@" >"$work/out" 2>&1
    code=$?
    out=$(cat "$work/out")
    is "$text: exit code" "$code" "$wanted"
}
# lying FAULT: options that make the mock lie.
lying() {
    printf "  mock:\n    faults: ['%s']\n" "$1" >"$work/section.yaml"
}

run 2 "no adapter"
run 2 "two ways at once" --adapter "$mock" --router ipc:///tmp/none
run 2 "no such cases" --adapter "$mock" --cases "$work/none"
run 2 "no such section" --adapter "$mock" --section "$work/none"
run 2 "a wrong number of jobs" --adapter "$mock" --jobs 0
run 1 "no such rule" --adapter "$mock" --only no.such.rule
run 1 "no such program" --adapter /nonexistent/sandbox-mock --only list.empty
like "it says so" "$out" 'FAIL list.empty'
run 1 "no such router" --router ipc:///nonexistent/router.sock --only list.empty

run 0 "a right adapter" --adapter "$mock" --only fs.stat
like "its summary" "$out" '^[0-9]+ passed, 0 failed, 0 skipped'

# Adapters that lie.
lying '{"fault":"error","operation":"fs::stat","code":"S216","times":0}'
run 1 "a wrong code" --adapter "$mock" --only fs.stat --section "$work/section.yaml"
like "it names rule, section and line" "$out" 'FAIL fs.stat.missing .*\(contract 8.*step 1 \(line [0-9]+\): wants S211, got S216'
lying '{"fault":"error","operation":"fs::stat","code":"S211","message":"gone","times":0}'
run 1 "a message that does not name the path" --adapter "$mock" --only fs.stat.missing --section "$work/section.yaml"
like "it is told" "$out" 'the message lacks'
lying '{"fault":"error","operation":"fs::stat","code":"S300","outcome":"never_ran","times":0}'
run 1 "an outcome where none may be" --adapter "$mock" --only fs.stat.missing --section "$work/section.yaml"
lying '{"fault":"slow","operation":"fs::stat","ms":6000,"times":0}'
run 1 "too slow" --adapter "$mock" --only fs.ls.special --section "$work/section.yaml"
lying '{"fault":"die","operation":"exec","when":"after","times":0}'
run 1 "dies" --adapter "$mock" --only exec.run.signal --section "$work/section.yaml"
like "S301 is no answer of its own" "$out" 'FAIL exec.run.signal .*got S301'
lying '{"fault":"refuse_stop","times":0}'
run 1 "a sandbox that outlives its stop" --adapter "$mock" --only stop.with-background --section "$work/section.yaml"
lying '{"fault":"contract","minor":1,"extra_keys":true}'
run 0 "unknown keys are no fault" --adapter "$mock" --only exec.run.keys --section "$work/section.yaml"
lying '{"fault":"contract","minor":0}'
run 0 "an older minor" --adapter "$mock" --only exec.run.bad --section "$work/section.yaml"
run 0 "one that promises less" --adapter "$mock" --only exec.run.keys --section "$work/section.yaml"
like "what it does not promise is skipped, with the reason" "$out" 'skip exec.run.keys.*needs contract minor 1, the adapter has 0'

# An operation or a code that no rule of a whole run brings about.
mkdir -p "$work/few"
cp -r "$(dirname "$0")/../conformance/cases/list" "$work/few/"
run 1 "operations left out" --adapter "$mock" --cases "$work/few"
like "no rule fails" "$out" ' 0 failed'
like "an operation is named" "$out" 'never exercised: operation fs::chmod'
like "a code is named" "$out" 'never exercised: code S217'
run 0 "unless that is wanted" --adapter "$mock" --cases "$work/few" --partial

# Case files that are none.
printf 'title: x\ncontract: "1"\nrules:\n  - id: a\n    text: b\n' >"$work/few/bad.yaml"
run 2 "a case without steps" --adapter "$mock" --cases "$work/few"
like "file and line" "$out" 'bad.yaml:4'
printf 'title: x\ncontract: "1"\nrules:\n  - id: list.empty\n    text: b\n    steps: [{ call: list }]\n' >"$work/few/bad.yaml"
run 2 "an id that stands twice" --adapter "$mock" --cases "$work/few"
like "which" "$out" 'list.empty stands twice'

# TAP and JUnit.
lying '{"fault":"error","operation":"fs::stat","code":"S216","times":0}'
run 1 "TAP" --adapter "$mock" --only fs.stat.m --tap --junit "$work/junit.xml" --section "$work/section.yaml"
like "a failure" "$out" $'^not ok 1 - fs.stat.missing .*\n1\.\.1\n'
ok "JUnit: one failure" grep -q '<testsuite .*tests="1" failures="1" skipped="0"' "$work/junit.xml"
ok "JUnit: with its reason" grep -q 'name="fs.stat.missing".*<failure message=.*S216' "$work/junit.xml"
ok "JUnit: well-formed" python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$work/junit.xml"
run 0 "TAP of a pass" --adapter "$mock" --only fs.stat.missing --tap
like "ok" "$out" $'^ok 1 - fs.stat.missing .*\n1\.\.1\n'

# Two adapters.
run 0 "the mock beside itself" --compare "$mock" "$mock" --only fs.mv
like "nowhere different" "$out" 'rules compared, 0 differ'
run 0 "its answers in a file" --adapter "$mock" --only fs.stat.m --answers "$work/answers.json"
run 0 "a second run against them" --adapter "$mock" --only fs.stat.m --against "$work/answers.json"
like "none differs" "$out" '1 rules compared, 0 differ'
lying '{"fault":"error","operation":"fs::stat","code":"S215","message":"/nope","times":0}'
run 1 "one that answers otherwise" --adapter "$mock" --only fs.stat.m --against "$work/answers.json" --section "$work/section.yaml"
like "which rule differs" "$out" 'differs fs.stat.missing: pass  / FAIL'
run 1 "no such answers" --adapter "$mock" --only fs.stat.m --against "$work/none.json"
mkdir "$work/other"
cat >"$work/other/sandbox-mock" <<SH
#!/bin/sh
cat "\$SANDBOX_CONFIG" - >"$work/other/config.yaml" <<YAML
  mock:
    faults: ['{"fault":"error","operation":"fs::stat","code":"S216","message":"/nope","times":0}']
YAML
SANDBOX_CONFIG="$work/other/config.yaml" exec "$mock" "\$@"
SH
chmod +x "$work/other/sandbox-mock"
run 1 "beside one that answers otherwise" --compare "$mock" "$work/other/sandbox-mock" --only fs.stat.missing
like "the rule and both verdicts" "$out" 'differs fs.stat.missing: pass .* / FAIL .*S216'

# A router that runs.
start sandbox-mock
run 0 "a running router" --router "ipc://$work/run/router.sock" --only exec.s
like "rules with settings of their own are skipped" "$out" 'skip exec.slots.cap .*the router is not ours'
is "nothing is left behind" "$(iii trigger sandbox::list)" "[]"
stop_router

# An adapter that is none of ours and answers nonsense.
mkdir "$work/foreign"
# shellcheck disable=SC2016
printf '#!/bin/sh\nexec %s "$SANDBOX_ROUTER" foreign\n' "$build/tests/pair0-adapter" >"$work/foreign/foreign"
chmod +x "$work/foreign/foreign"
run 1 "an adapter that echoes" --adapter "$work/foreign/foreign" --only request.
like "its failures are told" "$out" 'FAIL request.order.exec.unknown .*wants error S002, got a reply'
like "and what it does not promise" "$out" ' 0 skipped|skip '

# The example of the documents: right in what it does, and told what it lacks.
cp "$(dirname "$0")/../../docs/example-adapter.py" "$work/foreign/"
chmod +x "$work/foreign/example-adapter.py"
for rules in info. list.order list.keys create.image-unknown stop.twice; do
    case $rules in stop.twice) code=1 ;; *) code=0 ;; esac
    run "$code" "the example adapter, $rules" --adapter "$work/foreign/example-adapter.py" --only "$rules"
done
like "what it lacks" "$out" 'FAIL stop.twice .*wants S004, got S002'

# Installed elsewhere: the cases come along.
cmake -DCMAKE_INSTALL_PREFIX="$work/prefix" -P "$build/tests/conformance/cmake_install.cmake" >/dev/null
cp "$SANDBOX_BIN/sandbox-router" "$work/prefix/bin/"
mv "$work/prefix" "$work/moved"
mapfile -t installed < <(find "$work/moved" -path '*/cases/list/list.yaml')
is "the cases are installed" "${#installed[@]}" 1
sed -i 's/id: list.empty/id: list.installed/' "${installed[0]}"
timeout 60 "$work/moved/bin/sandbox-conformance" --adapter "$mock" --only list.installed >"$work/out"
is "and found beside the program, wherever it is" "$?" 0
ok "one rule" grep -q '^1 passed' "$work/out"
finish
