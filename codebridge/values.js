// How values of a program become text, evaluated before the prelude, which
// gets it as host.values. Like there, nothing relies on what a program could
// have changed.
(function (isToolName) {
  "use strict";
  const {apply, getPrototypeOf} = Reflect;
  const {create, keys, getOwnPropertyDescriptor: descriptorOf} = Object;
  const {stringify} = JSON;
  const {isArray} = Array;
  const ObjectProto = Object.prototype, PromiseProto = Promise.prototype, TypeErrorCtor = TypeError, StringCtor = String;
  const call = (f) => (self, a, b) => apply(f, self, [a, b]);
  const slice = call(StringCtor.prototype.slice), charCodeAt = call(StringCtor.prototype.charCodeAt);
  const mapForEach = call(Map.prototype.forEach), setForEach = call(Set.prototype.forEach);
  const regExpText = call(RegExp.prototype.toString);
  const valueOf = {number: call(Number.prototype.valueOf), string: call(StringCtor.prototype.valueOf), boolean: call(Boolean.prototype.valueOf)};
  const protos = {
    error: Error.prototype, map: Map.prototype, set: Set.prototype, regexp: RegExp.prototype,
    typed: getPrototypeOf(Uint8Array.prototype), buffer: ArrayBuffer.prototype, view: DataView.prototype,
    weakmap: WeakMap.prototype, weakset: WeakSet.prototype, number: Number.prototype, string: StringCtor.prototype, boolean: Boolean.prototype,
  };
  const typedLength = call(descriptorOf(protos.typed, "length").get);
  const bufferLength = call(descriptorOf(ArrayBuffer.prototype, "byteLength").get);

  const isObject = (v) => typeof v === "object" ? v !== null : typeof v === "function";
  function isA(v, proto) {
    for (let p = v, i = 0; p !== null && i < 1000; i++) {
      p = getPrototypeOf(p);
      if (p === proto) return true;
    }
    return false;
  }
  const isError = (v) => isObject(v) && isA(v, protos.error);

  // One writer for arguments (strict: what JSON cannot say is an error) and
  // for values and console output (lenient: it becomes a readable note). It
  // counts on after the limit, to tell how large the value would have been.
  //
  // It does not recurse: the engine's stack is small, and a program's values
  // may be deep. stack[1..depth] are the arrays and objects being written:
  // {of, count, at, keys, next, first}; keys is undefined for arrays.
  const maxDepth = 300, giveUp = 8 << 20, tooLarge = {};
  let text, size, limit, strict, depth, stack;
  let parts, partCount; // text so far in pieces: adding to one long string would copy it each time

  function put(s) {
    size += s.length;
    if (size > limit) {
      if (strict || size > giveUp) throw tooLarge;
      return;
    }
    text += s;
    if (text.length > 4096) { parts[partCount++] = text; text = ""; }
  }
  function written() {
    if (partCount === 0) return text;
    parts[partCount++] = text;
    for (let n = partCount; n > 1; n = (n + 1) >> 1) {
      for (let i = 0; i < n; i += 2) parts[i >> 1] = i + 1 < n ? parts[i] + parts[i + 1] : parts[i];
    }
    return parts[0];
  }
  function where() {
    let s = strict ? "args" : "the value"; // strict: the list [id, args] is written
    for (let d = strict ? 2 : 1; d <= depth; d++) {
      const f = stack[d], i = f.next - 1;
      s += f.keys === undefined ? "[" + i + "]" : "." + f.keys[i];
    }
    return s;
  }
  function odd(note, advice) {
    if (strict) throw new TypeErrorCtor(where() + " is " + note + advice);
    put(stringify("[" + note + "]"));
  }
  function open(of, count, at, ks) {
    put(ks === undefined ? "[" : "{");
    stack[++depth] = {of, count, at, keys: ks, next: 0, first: true};
  }
  function openObject(o, ks) {
    open(o, ks.length, (i) => o[ks[i]], ks);
  }
  // write writes a value, or begins to: what open has begun is written on by
  // writeAll.
  function write(v, key) {
    switch (typeof v) {
    case "string": put(stringify(v)); return;
    case "boolean": put(v ? "true" : "false"); return;
    case "bigint": put("" + v); return;
    case "number":
      if (v - v === 0) put("" + v);
      else if (strict) odd("" + v, ", which JSON cannot hold");
      else put("null");
      return;
    case "undefined": put("null"); return;
    case "symbol": odd(apply(StringCtor, undefined, [v]), ", a symbol"); return;
    case "function":
      odd(isToolName(v) ? "a tool that was not called" : "function " + plain(v.name, ""), "; call it, or leave it out");
      return;
    }
    if (v === null) { put("null"); return; }
    for (let d = 1; d <= depth; d++) {
      if (stack[d].of === v) { odd("circular", ": it contains itself"); return; }
    }
    if (depth >= maxDepth) { odd("nested deeper than " + maxDepth, ""); return; }
    if (isA(v, PromiseProto)) {
      odd("a promise: write await before the call, or await Promise.all([...]) for several", "");
      return;
    }
    const toJSON = v.toJSON;
    if (typeof toJSON === "function") {
      const j = apply(toJSON, v, ["" + key]);
      if (!isObject(j) || typeof j === "function") { write(j, key); return; }
      v = j;
    }
    if (isArray(v)) { open(v, v.length, (i) => v[i], undefined); return; }
    const proto = getPrototypeOf(v);
    if (proto === ObjectProto || proto === null) { openObject(v, keys(v)); return; }
    if (isA(v, protos.error)) { openError(v); return; }
    if (isA(v, protos.map)) { openMap(v); return; }
    if (isA(v, protos.set)) {
      const a = create(null);
      let n = 0;
      setForEach(v, (x) => { a[n++] = x; });
      open(v, n, (i) => a[i], undefined);
      return;
    }
    if (isA(v, protos.typed)) { open(v, typedLength(v), (i) => v[i], undefined); return; }
    if (isA(v, protos.buffer)) { odd("ArrayBuffer of " + bufferLength(v) + " bytes", "; pass an array of numbers or base64 text"); return; }
    if (isA(v, protos.view)) { odd("DataView", "; pass an array of numbers"); return; }
    if (isA(v, protos.regexp)) { put(stringify(regExpText(v))); return; }
    if (isA(v, protos.weakmap) || isA(v, protos.weakset)) { odd("WeakMap or WeakSet", ""); return; }
    if (isA(v, protos.number)) { write(valueOf.number(v), ""); return; }
    if (isA(v, protos.string)) { write(valueOf.string(v), ""); return; }
    if (isA(v, protos.boolean)) { write(valueOf.boolean(v), ""); return; }
    openObject(v, keys(v));
  }
  function openError(e) {
    const own = keys(e), ks = create(null);
    let n = 0;
    ks[n++] = "name";
    ks[n++] = "message";
    for (let i = 0; i < own.length; i++) {
      if (own[i] !== "name" && own[i] !== "message") ks[n++] = own[i];
    }
    open(e, n, (i) => i > 1 ? e[ks[i]] : plain(e[ks[i]], i === 0 ? "Error" : ""), ks);
  }
  function openMap(m) {
    const ks = create(null), vs = create(null);
    let n = 0, named = true;
    mapForEach(m, (v, k) => {
      if (typeof k !== "string" && typeof k !== "number") named = false;
      ks[n] = k;
      vs[n++] = v;
    });
    if (!named) { open(m, n, (i) => [ks[i], vs[i]], undefined); return; }
    for (let i = 0; i < n; i++) ks[i] = "" + ks[i];
    open(m, n, (i) => vs[i], ks);
  }
  function writeAll(v) {
    write(v, "");
    while (depth > 0) {
      const f = stack[depth], ks = f.keys;
      if (f.next >= f.count) {
        put(ks === undefined ? "]" : "}");
        stack[depth--] = undefined;
        continue;
      }
      const i = f.next++, k = ks === undefined ? i : ks[i];
      let x;
      try { x = f.at(i); } catch (e) {
        if (strict) throw e;
        x = "[getter threw " + shortError(e) + "]";
      }
      if (ks !== undefined && (x === undefined || typeof x === "function" && !strict && !isToolName(x))) continue;
      put((f.first ? "" : ",") + (ks === undefined ? "" : stringify(k) + ":"));
      f.first = false;
      try { write(x, k); } catch (e) {
        if (strict || e === tooLarge) throw e;
        put(stringify("[" + shortError(e) + "]"));
      }
    }
  }
  // toJSON returns {text, size, over}; text is whole unless over.
  function toJSON(v, max, isStrict) {
    text = ""; size = 0; limit = max; strict = isStrict; depth = 0; stack = create(null);
    parts = create(null); partCount = 0;
    let more = false;
    try { writeAll(v); } catch (e) {
      if (e !== tooLarge) throw e;
      more = true;
    }
    const out = {text: written(), size, more, over: size > max};
    text = ""; parts = undefined;
    if (!out.over && size * 3 > max) {
      out.size = utf8Length(out.text);
      out.over = out.size > max;
    }
    return out;
  }
  function utf8Length(s) {
    let n = s.length;
    for (let i = 0; i < s.length; i++) {
      const c = charCodeAt(s, i);
      if (c > 0x7f) n += c > 0x7ff ? (c >= 0xd800 && c < 0xe000 ? 1 : 2) : 1;
    }
    return n;
  }
  // shape says in one line what a value is made of.
  function shape(v, level) {
    try {
      if (v === null) return "null";
      if (typeof v === "string") return "string of " + v.length + " characters";
      if (typeof v !== "object") return typeof v;
      if (isArray(v)) return "array of " + v.length + (v.length > 0 && level > 0 ? " × " + shape(v[0], level - 1) : "");
      const ks = keys(v);
      if (level === 0) return "object with " + ks.length + " keys";
      let s = "{";
      for (let i = 0; i < ks.length && i < 12; i++) s += (i > 0 ? ", " : "") + slice(ks[i], 0, 40) + ": " + shape(v[ks[i]], level - 1);
      return s + (ks.length > 12 ? ", … " + (ks.length - 12) + " more keys" : "") + "}";
    } catch { return "unreadable"; }
  }

  function plain(v, otherwise) {
    if (typeof v === "string") return v;
    if (v === undefined || v === null) return otherwise;
    try { return "" + v; } catch { return otherwise; }
  }
  function shortError(e) {
    try {
      if (isError(e)) return slice(plain(e.name, "Error") + ": " + plain(e.message, ""), 0, 500);
      return slice(preview(e, 500), 0, 500);
    } catch { return "an error that cannot be read"; }
  }
  // preview is toJSON for use while another value is being written.
  function preview(v, max) {
    const saved = [text, size, limit, strict, depth, stack, parts, partCount];
    try {
      const j = toJSON(v, max, false);
      return j.over ? slice(j.text, 0, max) + "…" : j.text;
    } finally {
      text = saved[0]; size = saved[1]; limit = saved[2]; strict = saved[3]; depth = saved[4]; stack = saved[5]; parts = saved[6]; partCount = saved[7];
    }
  }

  return {toJSON, preview, shape, shortError, plain, isA, isObject, isError};
})
