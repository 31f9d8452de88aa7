const tools = globalThis.tools;
let out = []
for (const q of ['archive note', 'square root', 'split text']) {
  const hits = await tools.search(q, 1)
  out.push(...hits.map(h => `${q}: ${h.id}`))
}
console.log(out.join('\n'))
out
