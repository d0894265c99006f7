# The Debian package: packages_debian.bash PROGRAM FOLDER CARGO_DEB. It has what it must have, lintian finds no error,
# and it can be unpacked, with a configuration that is good.
set -euo pipefail
bin=$1 folder=$2/debian cargo_deb=$3
mkdir -p "$folder/build/dist" "$folder/root"
cp "$bin" "$folder/build/dist/tidegate"
# What was built is packed, not built anew.
CARGO_TARGET_DIR=$folder/build "$cargo_deb" --profile dist --no-build --no-strip --quiet --output "$folder/tidegate.deb" >/dev/null
deb=$folder/tidegate.deb

dpkg-deb -c "$deb" >"$folder/list"
dpkg-deb -I "$deb" >"$folder/about"
for path in ./usr/bin/tidegate ./etc/tidegate/tidegate.toml ./usr/lib/systemd/system/tidegate.service \
    ./usr/share/doc/tidegate/copyright ./usr/share/doc/tidegate/tidegate.toml; do
    grep -q " $path\$" "$folder/list" || { cat "$folder/list"; echo "the package lacks $path" >&2; exit 1; }
done
dpkg-deb --ctrl-tarfile "$deb" | tar -xO ./conffiles | grep -qx /etc/tidegate/tidegate.toml
for script in postinst prerm postrm; do
    dpkg-deb --ctrl-tarfile "$deb" | tar -xO "./$script" >"$folder/$script"
    sh -n "$folder/$script"
    # The unit is enabled, started and stopped by what cargo-deb puts there.
    if grep -q '#DEBHELPER#' "$folder/$script"; then
        echo "$script has its mark still" >&2
        exit 1
    fi
done
grep -q 'deb-systemd-helper enable' "$folder/postinst"
grep -Eq '^ *(Pre-)?Depends: .*(libc6|adduser)' "$folder/about"

if command -v lintian >/dev/null; then
    # That a binary is not stripped, and has no manual page, is not the package's to mend.
    lintian --fail-on error --suppress-tags unstripped-binary-or-object,no-manual-page "$deb" | grep '^E' || true
    lintian --fail-on error --suppress-tags unstripped-binary-or-object "$deb" >/dev/null
fi

# Unpacked into a root of its own: what is configured there is good. Its scripts would act on this machine.
if [ "$(id -u)" -eq 0 ]; then
    root=$folder/root
    mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
    touch "$root/var/lib/dpkg/status"
    dpkg --root="$root" --force-depends --force-not-root --log="$folder/dpkg.log" --unpack "$deb" >/dev/null 2>&1
    # dpkg gives a configuration its name when the package is configured.
    (cd "$root" && usr/bin/tidegate check -c etc/tidegate/tidegate.toml.dpkg-new >/dev/null)
fi
echo "the package has $(wc -l <"$folder/list") files and $(stat -c %s "$deb") bytes"
