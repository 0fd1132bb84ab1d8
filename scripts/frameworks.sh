#!/bin/sh
# Install the frameworks that we have classes for, each with this project into an environment of its own, for
# `make frameworks`: the newest that their extra allows, and the oldest.
#
# Prints the folder that they are in. What cannot be installed is left out, and its tests say so.
set -eu
cd "$(dirname "$0")/.."
folder="${PLAINMIND_FRAMEWORKS:-${XDG_CACHE_HOME:-$HOME/.cache}/plainmind-frameworks}"
mkdir -p "$folder"
UV_CACHE_DIR="$folder/uv"
export UV_CACHE_DIR
uv="$PWD/.venv/bin/uv"

install_into() { # NAME RESOLUTION EXTRA MORE…
    place="$folder/$1" resolution="$2" extra="$3"
    shift 3
    [ -x "$place/bin/python" ] || "$uv" venv --quiet --python .venv/bin/python "$place" >&2
    again="${UPGRADE:-}"
    [ "$resolution" = highest ] || again=1 # what is there may be newer than the oldest that is allowed now
    "$uv" pip install --quiet --python "$place/bin/python" --resolution "$resolution" ${again:+--upgrade} \
        --editable ".[$extra]" "$@" >&2 || {
        echo "note: $extra ($resolution) could not be installed; its tests are left out if it never was" >&2
    }
}
framework() { # EXTRA MORE…: what else its example needs
    case " ${ONLY:-$1} " in *" $1 "*) ;; *) return 0 ;; esac
    echo "installing $1 …" >&2
    install_into "$1" highest "$@"
    install_into "$1-oldest" lowest-direct "$@"
}
framework langchain "langchain-openai>=1.0"
framework langgraph
framework pydantic-ai "pydantic-ai-slim[openai]>=2.0"
framework agents
framework llama-index "llama-index-llms-openai>=0.6"
framework adk
framework autogen "autogen-agentchat>=0.7" "autogen-ext[openai]>=0.7"
framework agent-framework "agent-framework-openai>=1.0"
framework smolagents "smolagents[openai]>=1.20"
framework strands "strands-agents[openai]>=1.0"
# A client of another vendor that our server is asked by: it needs nothing of this project.
case " ${ONLY:-mem0} " in *" mem0 "*)
    [ -x "$folder/mem0/bin/python" ] || "$uv" venv --quiet --python .venv/bin/python "$folder/mem0" >&2
    "$uv" pip install --quiet --python "$folder/mem0/bin/python" ${UPGRADE:+--upgrade} "mem0ai>=2.2" >&2 ||
        echo "note: mem0ai could not be installed; its test is left out" >&2
    ;;
esac
framework crewai
echo "$folder"
