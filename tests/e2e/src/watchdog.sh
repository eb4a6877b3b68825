# Ends a control plane and removes its folder ($1) when standard input ends: when the test is done, or has died in whatever way.
# Reads lines `watch PID` and `forget PID`.
trap '' HUP INT TERM
pids=
while read -r verb pid; do
    case $verb in
    watch) pids="$pids $pid" ;;
    forget)
        kept=
        for other in $pids; do [ "$other" = "$pid" ] || kept="$kept $other"; done
        pids=$kept
        ;;
    esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
[ -n "$1" ] || exit 0
# what is being killed may still write for a moment
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" 2>/dev/null && exit 0
    sleep 0.1
done
