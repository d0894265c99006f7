# The unit and its socket: packages_systemd.bash PROGRAM FOLDER. Both are known to systemd in every line, and the
# unit is as closed as systemd can tell.
set -euo pipefail
bin=$1 folder=$2/systemd
# The exposure that systemd counts, of 100; what is left is the network.
exposure=20

mkdir "$folder"
for unit in tidegate.service tidegate.socket; do
    # The program is not where it will be installed.
    sed -E "s#^(Exec[A-Za-z]+=)tidegate #\1$bin #" "deploy/$unit" >"$folder/$unit"
done
said=$(systemd-analyze verify --man=no "$folder/tidegate.service" "$folder/tidegate.socket" 2>&1 || true)
if [ -n "$said" ]; then
    echo "$said" >&2
    exit 1
fi
# --offline came with systemd 250.
systemd-analyze security --offline=yes --threshold="$exposure" "$folder/tidegate.service" | tail -n 1
