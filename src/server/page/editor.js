// SPDX-License-Identifier: Apache-2.0
// editor: the code, with Python's colours and the findings beneath what they are about.
//
// CodeMirror stands in a shadow root: there it keeps its styles in an adopted sheet, where in
// the document it would need <style> elements, which the page's policy does not allow.
// Colours are the page's custom properties, which reach into the shadow.
import {
  EditorState, EditorView, HighlightStyle, Prec, bracketMatching, defaultKeymap,
  drawSelection, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, history,
  historyKeymap, indentOnInput, indentUnit, indentWithTab, keymap, lineNumbers, lintGutter,
  lintKeymap, pythonLanguage, setDiagnostics, syntaxHighlighting, tags,
} from "./codemirror.js";
import { element } from "./dom.js";
import { columnToOffset } from "./text.js";

const SEVERITIES = { block: "error", warn: "warning", note: "info" };

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--code-name)", fontWeight: "600" },
  { tag: tags.function(tags.variableName), color: "var(--code-call)" },
  { tag: tags.meta, color: "var(--code-call)" },
]);

const looks = EditorView.theme({
  "&": { height: "100%", color: "var(--ink)", backgroundColor: "var(--paper)", fontSize: "var(--code-size)" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5" },
  ".cm-content": { caretColor: "var(--ink)", padding: "6px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--paper)", color: "var(--quiet)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "var(--raised)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selection) !important" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--selection)", outline: "1px solid var(--line)" },
  ".cm-tooltip": { backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "6px", maxWidth: "34rem" },
  ".cm-diagnostic": { padding: "5px 9px", whiteSpace: "pre-wrap" },
  // Waves are pictures in CodeMirror; a text decoration follows the colours of the page.
  ".cm-lintRange": { backgroundImage: "none !important", textDecoration: "underline wavy 1.5px", textUnderlineOffset: "4px", textDecorationSkipInk: "none" },
  ".cm-lintRange-error": { textDecorationColor: "var(--bad)" },
  ".cm-lintRange-warning": { textDecorationColor: "var(--warn)" },
  ".cm-lintRange-info": { textDecorationColor: "var(--accent)" },
  ".cm-gutter-lint": { width: "1.1em" },
  ".cm-lint-marker": { content: "none !important", width: "auto", height: "auto", textAlign: "center", lineHeight: "1.5", fontSize: "0.85em" },
  ".cm-lint-marker-error::before": { content: "'●'", color: "var(--bad)" },
  ".cm-lint-marker-warning::before": { content: "'▲'", color: "var(--warn)" },
  ".cm-lint-marker-info::before": { content: "'■'", color: "var(--accent)" },
});

// Where in the document a range of lines and columns is; columns may be null.
function range(document, place) {
  const line = document.line(Math.min(Math.max(place.line ?? 1, 1), document.lines));
  const last = document.line(Math.min(Math.max(place.end_line ?? line.number, line.number), document.lines));
  const from = line.from + (place.column ? columnToOffset(line.text, place.column) : line.text.length - line.text.trimStart().length);
  const to = place.end_column ? last.from + columnToOffset(last.text, place.end_column) : last.to;
  return { from, to: Math.max(to, Math.min(from + 1, document.length)) };
}

// Typing over a selection: left to itself the browser carries its colours over as a style
// attribute, which the page's policy refuses, with a complaint.
const overtype = EditorView.domEventHandlers({
  beforeinput: (event, view) => {
    if (event.inputType !== "insertText" || !event.data || view.composing || view.state.selection.main.empty)
      return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

export class Editor {
  // changed(): the text is another. run(): the user wants it run.
  constructor(place, { text, changed, run }) {
    const root = place.attachShadow({ mode: "open" });
    // Scrolling and height are the place's, which the shadow's own content must fill.
    const inside = element("div");
    inside.style.cssText = "height: 100%; min-height: inherit";
    root.append(inside);
    this.view = new EditorView({
      parent: inside,
      root,
      state: EditorState.create({
        doc: text,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run: () => (run(), true) }])),
          lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), highlightSpecialChars(),
          history(), drawSelection(), indentOnInput(), bracketMatching(), lintGutter(),
          overtype, indentUnit.of("    "), EditorState.tabSize.of(4),
          pythonLanguage, syntaxHighlighting(colours), looks,
          EditorView.contentAttributes.of({ "aria-label": "Python code", spellcheck: "false", autocapitalize: "off" }),
          EditorView.updateListener.of((update) => update.docChanged && changed()),
          keymap.of([indentWithTab, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
        ],
      }),
    });
  }

  get text() {
    return this.view.state.doc.toString();
  }

  set text(text) {
    this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  focus() {
    this.view.focus();
  }

  // Underlines findings, as a result or a check tells them.
  showFindings(findings) {
    const { state } = this.view;
    this.view.dispatch(setDiagnostics(state, findings.filter((finding) => finding.line).map((finding) => ({
      ...range(state.doc, finding),
      severity: SEVERITIES[finding.severity] ?? "info",
      message: finding.hint ? `${finding.message}\n${finding.hint}` : finding.message,
      source: finding.rule,
    })).sort((a, b) => a.from - b.from)));
  }

  // What a finding is about: the text of its range, without the quotes of a string.
  named(place) {
    const { from, to } = range(this.view.state.doc, place);
    return this.view.state.sliceDoc(from, to).replace(/^[a-z]*(['"])(.*)\1$/i, "$2");
  }

  // Selects a range and takes the focus.
  goTo(place) {
    const { from, to } = range(this.view.state.doc, place);
    this.view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
  }
}
