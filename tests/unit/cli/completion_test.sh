#!/bin/bash
# The scripts are read by their shells, and bash's also completes.  A shell that is not installed
# is a skip.
cove=$1
number=0
failed=0

report() # WHETHER NAME
{
    number=$((number + 1))
    [ "$1" = 0 ] || failed=1
    if [ "$1" = 0 ]; then echo "ok $number - $2"; else echo "not ok $number - $2"; fi
}

# What bash offers after the given words, one a line.
offers()
{
    COMP_WORDS=(cove "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _cove cove "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
    printf '%s\n' "${COMPREPLY[@]}"
}

expect() # NAME WANT WORD...
{
    local name=$1 want=$2
    shift 2
    offers "$@" | grep -qxF -- "$want"
    report $? "$name"
}

for shell in bash zsh fish; do
    if ! command -v $shell >/dev/null; then
        number=$((number + 1))
        echo "ok $number - $shell reads its script # SKIP no $shell here"
        continue
    fi
    "$cove" completion $shell >"${TMPDIR:-/tmp}/cove-completion.$$"
    $shell -n "${TMPDIR:-/tmp}/cove-completion.$$"
    report $? "$shell reads its script"
    rm -f "${TMPDIR:-/tmp}/cove-completion.$$"
done

eval "$("$cove" completion bash)"
expect 'a command is completed' run r
expect 'an option is completed' --timeout run --ti
expect 'an option of this program only is completed' --print-plan run --pr
expect 'a choice is completed' strict run --seccomp s
expect 'a file is completed' /etc/passwd run --env-file /etc/passw
expect 'the command to run is completed' printf run --rm printf
expect 'a shell is completed' fish completion f
expect 'a verb is completed' explain policy e
expect 'a command to be helped with is completed' rollback help roll
expect 'the command behind -- is completed' printf run -- printf
[ -z "$(offers run -- make --ti)" ]
report $? 'what stands behind -- is not ours to complete'
[ -z "$(offers policy show e)" ]
report $? 'a verb is completed once'
[ -z "$(offers run --hostname x)" ]
report $? 'a free text is not completed'
"$cove" completion nushell >/dev/null 2>&1
[ $? = 125 ]
report $? 'an unknown shell is an error'
echo "1..$number"
exit $failed
