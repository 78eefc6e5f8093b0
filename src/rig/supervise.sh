# shellcheck shell=sh
# Runs a program that must not outlive its starter: sh -c <this> segstock-rig FOLDER SIGNAL PROGRAM ...
#
# Standard input is a pipe whose other end only the starter holds. A watcher reads it, and the
# shell itself becomes the program, so that the starter is the program's parent and learns its
# true exit status. When the pipe closes without a word, the starter is gone, even by SIGKILL: the
# watcher then ends the program and removes its folder. A word means that the program has been
# dealt with.

folder=$1 signal=$2
shift 2
program=$$

# An asynchronous list would get /dev/null as its standard input.
exec 3<&0

children_of() {
    cat "/proc/$1/task/$1/children" 2>/dev/null ||
        ps -A -o ppid= -o pid= | while read -r parent child; do
            if [ "$parent" = "$1" ]; then echo "$child"; fi
        done
}

# A dead process that nobody has taken the exit status of, as in a container without an init, still
# gets signals.
runs() {
    kill -0 "$1" || return 1
    if read -r status 2>/dev/null <"/proc/$1/stat"; then
        case ${status##*) } in Z*) return 1 ;; esac
    fi
}

watch() {
    # When the starter leaves a stopped program behind, the kernel hangs up on their group.
    trap '' HUP INT TERM
    if read -r _ <&3; then exit; fi
    family="$program $(children_of "$program")"
    # shellcheck disable=SC2086 # A list of process ids is to be split.
    kill -CONT $family
    kill -s "$signal" "$program"
    # Postgres gives its shared memory back when it is asked to leave, not when it is killed.
    attempts=50
    while [ "$attempts" -gt 0 ] && runs "$program"; do
        attempts=$((attempts - 1))
        sleep 0.1
    done
    # shellcheck disable=SC2086
    kill -KILL $family
    rm -rf -- "$folder"
}

# Twice in the background, so that the program does not find a child it never started.
(watch >/dev/null 2>&1 &)
exec "$@" </dev/null 3<&-
