#!/bin/sh
# SPDX-License-Identifier: MIT
# lbctl metrics as Prometheus' own client, promtool and a real Prometheus take it; lbd away; the
# dashboard and the alerts ask for nothing that is not told.
. "$(dirname "$0")/lib.sh"
need promtool prometheus
need prometheus prometheus
/usr/bin/python3 -c 'import prometheus_client' 2>/dev/null ||
	bail_out "prometheus_client is missing (Debian package python3-prometheus-client)"

fetch() {	# PORT PATH
	/usr/bin/python3 - "$1" "$2" <<'END'
import sys, urllib.request
print(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
    f"http://127.0.0.1:{sys.argv[1]}{sys.argv[2]}", timeout=20).read().decode())
END
}

printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
is "$(lbctl metrics | grep -v '^#')" "lowbits_up 0" "without lbd that is all, and no error"
lbd_start
lbctl submit --name alpha --set run.group=g -- sh -c 'i=0; while :; do i=$((i+1)); echo "step $i/90000 loss 2.5"; sleep 0.2; done' \
	>/dev/null
lbctl submit --name beta -- sh -c 'exit 3' >/dev/null
wait_for '[ "$(lbctl status alpha --json | json step)" -gt 2 ]' 30
run_reaches beta failed 60

lbctl metrics >"$T/metrics"
cat >"$T/parse.py" <<'END'
import json, re, sys
from prometheus_client.parser import text_string_to_metric_families
families = {f.name: f for f in text_string_to_metric_families(open(sys.argv[1]).read())}
def value(name, **labels):
    return [s.value for s in families[name].samples if labels.items() <= s.labels.items()]
assert value("lowbits_up") == [1]
assert value("lowbits_runs", state="running") == [1] and value("lowbits_runs", state="failed") == [1]
assert value("lowbits_run_info", run="alpha", group="g", state="running") == [1]
assert value("lowbits_run_info", run="beta", state="failed", cause="error") == [1]
assert value("lowbits_run_step", run="alpha")[0] > 2 and value("lowbits_run_target_step", run="alpha") == [90000]
assert value("lowbits_run_loss", run="alpha") == [2.5]
assert all(f.type == "gauge" and f.documentation for f in families.values())
# what dashboard and alerts ask for is told, or may be (of a run that has it)
source = open(sys.argv[2]).read()
for text in open(sys.argv[3]).read(), open(sys.argv[4]).read():
    for name in set(re.findall(r"lowbits_[a-z_]+", text)):
        assert f'"{name}"' in source or name in families, name
json.load(open(sys.argv[3]))
END
ok "Prometheus' own client reads it" /usr/bin/python3 "$T/parse.py" "$T/metrics" "$src/ctl/metrics/metrics.c" \
	"$src/etc/grafana/dashboard.json" "$src/etc/grafana/alerts.yml"
ok "promtool finds no fault with names and help" promtool check metrics <"$T/metrics"
ok "nor with the alerts" promtool check rules "$src/etc/grafana/alerts.yml"

mkdir "$T/collector"
lbctl metrics -o "$T/collector/lowbits.prom" --every 1s 2>"$T/writer.err" &
writer=$!
wait_for '[ -s "$T/collector/lowbits.prom" ]' 20
mv "$T/collector" "$T/away"
wait_for '[ -s "$T/writer.err" ]' 20
mkdir "$T/collector"
wait_for '[ -s "$T/collector/lowbits.prom" ]' 20
kill $writer
wait $writer
is $? 0 "a file is written again and again, also behind one that could not be, until a signal comes"
exits 2 "--every of nothing" lbctl metrics --every 1s
exits 9 "a folder that is not there" lbctl metrics -o "$T/absent/x"

page=$(free_port)
lbctl metrics --listen "$page" &
server=$!
wait_for "fetch $page /metrics >\"\$T/page\"" 20
like "$(cat "$T/page")" '^lowbits_run_step\{run="alpha"\} [0-9]+$' "a page of this machine has the same"
exits 9 "a port that is taken" lbctl metrics --listen "$page"
unlike "$(awk -v p="$(printf ':%04X' "$page")" 'index($2, p) && $4 == "0A" { print $2 }' /proc/net/tcp)" '^00000000' \
	"it listens on no other address"

# --- a real Prometheus ------------------------------------------------------------------------
sed "s,for: [0-9]*m,for: 0s," "$src/etc/grafana/alerts.yml" >"$T/alerts.yml"
cat >"$T/prometheus.yml" <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [$T/alerts.yml]
scrape_configs:
  - {job_name: lowbits, static_configs: [{targets: ["127.0.0.1:$page"]}]}
END
api=$(free_port)
prometheus --config.file="$T/prometheus.yml" --storage.tsdb.path="$T/tsdb" --web.listen-address="127.0.0.1:$api" \
	>"$T/prometheus.log" 2>&1 &
prometheus=$!
asked() { fetch "$api" "/api/v1/query?query=$1"; }
wait_for 'asked lowbits_run_step | grep -q alpha' 40
passed "a real Prometheus has the steps"
wait_for 'asked ALERTS | grep -q "RunFailed.*beta\|beta.*RunFailed"' 40
passed "and its alert that a run has failed"
unlike "$(asked ALERTS)" 'alpha' "none of the run that is well"
lbd_kill9
wait_for 'asked ALERTS | grep -q LbdAway' 40
passed "and that lbd is away"
kill $prometheus $server
wait $prometheus $server
done_testing
