#!/usr/bin/env bash
# A PostgreSQL cluster for tests and benchmarks, on loopback, as an unprivileged user when called by root.
#
#   postgres.sh start FOLDER [SETTING…]     makes the cluster (first time, with these lines in its configuration), starts it,
#                                           prints its URL
#   postgres.sh kill FOLDER      ends it as a crash would
#   postgres.sh restart FOLDER   the same, and starts it again on the same port
#   postgres.sh stop FOLDER      ends it and removes the folder
#
# The role `weir` may create databases and owns those that it creates, and is not a superuser.
set -euo pipefail
action=${1:?start, kill, restart or stop}
folder=${2:?folder of the cluster}
settings=("${@:3}")

if ! command -v initdb >/dev/null; then
    for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done
fi

as_owner() {
    if [ "$(id -u)" != 0 ]; then "$@"
    elif id postgres >/dev/null 2>&1; then runuser -u postgres -- "$@"
    else setpriv --reuid=nobody --regid=nogroup --clear-groups -- "$@"
    fi
}

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

launch() { as_owner pg_ctl -D "$folder/data" -l "$folder/log" -w -t 60 start >/dev/null; }

case $action in
    start)
        mkdir -p "$folder"
        if [ "$(id -u)" = 0 ]; then
            chown "$(id -u postgres >/dev/null 2>&1 && echo postgres || echo nobody)" "$folder"
        fi
        cd "$folder"
        if [ ! -d data ]; then
            as_owner initdb -D "$folder/data" -U admin -A trust --locale=C.UTF-8 -E UTF8 >/dev/null
            port=$(free_port)
            as_owner tee -a data/postgresql.conf >/dev/null <<END
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 300
shared_buffers = 256MB
$(printf '%s\n' "${settings[@]}")
END
            echo "CREATE ROLE weir LOGIN CREATEDB" | as_owner postgres --single -D "$folder/data" postgres >single.log 2>&1
            echo "$port" > port
        fi
        launch
        echo "postgres://weir@127.0.0.1:$(cat port)/postgres"
        ;;
    restart)
        cd "$folder"
        if as_owner pg_ctl -D "$folder/data" status >/dev/null; then
            as_owner pg_ctl -D "$folder/data" -m immediate -w stop >/dev/null
        fi
        launch
        ;;
    kill)
        cd "$folder"
        as_owner pg_ctl -D "$folder/data" -m immediate -w stop >/dev/null
        ;;
    stop)
        cd "$folder"
        as_owner pg_ctl -D "$folder/data" -m fast -w stop >/dev/null || true
        cd /
        rm -rf "$folder"
        ;;
    *) echo "postgres.sh: unknown action $action" >&2; exit 2 ;;
esac
