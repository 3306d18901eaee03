#!/bin/sh
# The compiler of the workspace's crates while the tests are built: the one with the lints for what is built with its tests,
# which is all of a crate, and the plain one for the same crate without them, so that nothing is linted twice.
case " $* " in
    *" --crate-type lib "*) exec "$@" ;;
    *) exec clippy-driver "$@" ;;
esac
