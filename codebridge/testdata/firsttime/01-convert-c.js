```javascript
const [tool] = await openclaw.tools.search("convert length")
const out = await openclaw.tools.call(tool, { value: 26.2, from: 'mi', to: 'km' })
out.result.details
```
