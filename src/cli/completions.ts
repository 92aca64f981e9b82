/** The completion scripts of three shells, written from the verbs themselves. Names are asked of the control plane. */
export interface Words {
  /** The verbs typed so far, without `tally`. */
  readonly typed: string;
  readonly commands: ReadonlyArray<{ readonly name: string; readonly description: string }>;
  readonly options: readonly string[];
  readonly names: ReadonlyArray<'modules' | 'nodes'>;
}

export function bashCompletion(words: readonly Words[]): string {
  return `# Completion of tally for bash: source <(tally completion bash)
_tally() {
  local current="\${COMP_WORDS[COMP_CWORD]}" typed="" word candidates=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) case "$typed" in *" "*) ;; *) typed="\${typed:+$typed }$word" ;; esac ;; esac
  done
  ${caseOf(words)}
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _tally tally
`;
}

export function zshCompletion(words: readonly Words[]): string {
  return `#compdef tally
# Completion of tally for zsh: save it as _tally in a folder of $fpath
_tally() {
  local typed="" word candidates=""
  for word in "\${words[@]:1:$((CURRENT - 2))}"; do
    case "$word" in -*) ;; *) case "$typed" in *" "*) ;; *) typed="\${typed:+$typed }$word" ;; esac ;; esac
  done
  ${caseOf(words)}
  compadd -- \${=candidates}
}
if [ "$funcstack[1]" = "_tally" ]; then _tally "$@"; else compdef _tally tally; fi
`;
}

/** Of two words: a group and its verb, or a verb and the first name after it. */
function caseOf(words: readonly Words[]): string {
  const [root] = words.filter((one) => one.typed === '');
  const arms = words
    .filter((one) => one.typed !== '')
    .sort((a, b) => b.typed.length - a.typed.length)
    .map((one) => `"${one.typed}"|"${one.typed} "*) candidates="${candidates(one)}" ;;`);
  return [
    'case "$typed" in',
    ...arms.map((arm) => `    ${arm}`),
    `    "") candidates="${root === undefined ? '' : candidates(root)}" ;;`,
    '  esac',
  ].join('\n');
}

function candidates(words: Words): string {
  const named = words.names.map((what) => `$(tally names ${what} 2>/dev/null | tr '\\n' ' ')`);
  return [...words.commands.map((command) => command.name), ...words.options, ...named].join(' ');
}

export function fishCompletion(words: readonly Words[]): string {
  const lines = words.flatMap((one) => {
    const [verb, inner] = one.typed.split(' ');
    const seen = [verb, inner].filter((word) => word !== undefined && word !== '').map((word) => `__fish_seen_subcommand_from ${word}`);
    const when = one.typed === '' ? '__fish_use_subcommand' : seen.join('; and ');
    const not =
      one.commands.length > 0 && one.typed !== ''
        ? `; and not __fish_seen_subcommand_from ${one.commands.map((command) => command.name).join(' ')}`
        : '';
    return [
      ...one.commands.map((command) => `complete -c tally -f -n '${when}${not}' -a ${command.name} -d '${command.description.replace(/'/g, '’')}'`),
      ...one.options.filter((option) => option.startsWith('--')).map((option) => `complete -c tally -f -n '${when}' -l ${option.slice(2)}`),
      ...one.names.map((what) => `complete -c tally -f -n '${when}' -a '(tally names ${what} 2>/dev/null)'`),
    ];
  });
  return `# Completion of tally for fish: save it as ~/.config/fish/completions/tally.fish\n${lines.join('\n')}\n`;
}
