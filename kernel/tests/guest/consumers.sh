# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Fifteen SEQPACKET consumers of one object, without cache, each with its window
# (the paper's Fig. 7): memory of the whole guest beyond the start, processor
# time of the whole guest. Only under -icount do the times mean anything.
set -e
insmod /nnet.ko hash_bits=12
nnet-test ctl route /fig7 1
nnet-test ctl cs 0
nnet-test pump /fig7/object 5600000 1400 600 > /tmp/pumping & pumping=$!
i=0; until grep -qs ready /tmp/pumping; do sleep 0.1; i=$((i+1)); [ $i -lt 600 ] || exit 1; done
free_kb() { awk '/MemAvailable/ { print $2 }' /proc/meminfo; }
busy() { awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }
sleep 1
before=$(free_kb); least=$before; samples=0; begun=$(busy)
for i in $(seq 15); do nnet-test request /fig7/object 5600000 > /tmp/c$i & done
while [ "$(cat /tmp/c[0-9]* 2>/dev/null | grep -c requested)" -lt 15 ]; do
  now=$(free_kb); [ $now -ge $least ] || least=$now
  samples=$((samples + 1))
  sleep 0.02
done
busy=$(($(busy) - begun))
echo "15 consumers of 5.6 MB in segments of 1400 octets: $((before - least)) kB beyond the start at most ($samples samples), $busy hundredths of a second of processor time"
echo "ROW consumers=15,octets=5600000,size=1400,cores=$(nproc) nnet rss_bytes $(((before - least) * 1024)) B"
echo "ROW consumers=15,octets=5600000,size=1400,cores=$(nproc) nnet cpu_s $((busy / 100)).$(printf %02d $((busy % 100))) s"
kill $pumping
unload
