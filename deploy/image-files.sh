#!/bin/sh
# Gathers what the container image has besides its base: deploy/image-files.sh PROGRAM FOLDER
#
# That is the program, the libraries of glibc and gcc that it loads (3 MB; images that have all of glibc are 13 MB larger),
# and what Debian says of their packages: the licences, and the versions where scanners for vulnerabilities look in
# distroless images.
set -eu
program=$1 folder=$2

mkdir -p "$folder/lib" "$folder/lib64" "$folder/usr/local/bin" "$folder/var/lib/dpkg/status.d"
cp "$program" "$folder/usr/local/bin/tidegate"
libraries=$(ldd "$program" | grep -o '/[^ ]*')
for library in $libraries; do
    cp -L --parents "$library" "$folder"
    # The package may have it under /usr, which /lib is a link to.
    package=$(dpkg-query -S "$library" 2>/dev/null || dpkg-query -S "/usr$library")
    package=${package%%:*}
    dpkg-query -s "$package" >"$folder/var/lib/dpkg/status.d/$package"
    cp -L --parents "/usr/share/doc/$package/copyright" "$folder"
done
