package demo

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	emailPattern = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}`)
	linkPattern  = regexp.MustCompile(`https?://[^\s<>"')\]]+`)
	sentenceEnd  = regexp.MustCompile(`[.!?]+(\s|$)`)
)

func textTools() map[string]handler {
	plain := func(f func(string) string) handler {
		return func(a arguments) (any, error) { return f(a.text("text")), nil }
	}
	distinct := func(pattern *regexp.Regexp) handler {
		return func(a arguments) (any, error) { return union(nil, pattern.FindAllString(a.text("text"), -1)), nil }
	}
	return map[string]handler{
		"slugify":        plain(func(s string) string { return strings.Join(words(strings.ToLower(s)), "-") }),
		"reverse_text":   plain(reverse),
		"encode_url":     plain(url.QueryEscape),
		"trim_lines":     plain(trimLines),
		"extract_emails": distinct(emailPattern),
		"extract_links":  distinct(linkPattern),
		"count_words": func(a arguments) (any, error) {
			s := a.text("text")
			return object{"characters": utf8.RuneCountInString(s), "words": len(words(s)), "sentences": len(sentenceEnd.FindAllString(s, -1)), "lines": len(lines(s))}, nil
		},
		"change_case": func(a arguments) (any, error) { return changeCase(a.text("text"), a.text("case")) },
		"replace_text": func(a arguments) (any, error) {
			s, find := a.text("text"), a.text("find")
			if find == "" {
				return nil, errors.New("find must not be empty")
			}
			return object{"text": strings.ReplaceAll(s, find, a.text("replace")), "replaced": strings.Count(s, find)}, nil
		},
		"match_regex": func(a arguments) (any, error) {
			re, err := regexp.Compile(a.text("pattern"))
			if err != nil {
				return nil, fmt.Errorf("pattern: %w", err)
			}
			matches := re.FindAllStringSubmatch(a.text("text"), a.count("limit", 100))
			if matches == nil {
				matches = [][]string{}
			}
			return matches, nil
		},
		"split_text": func(a arguments) (any, error) {
			return strings.Split(a.text("text"), a.or("separator", "\n")), nil
		},
		"join_text": func(a arguments) (any, error) {
			separator := " "
			if a.has("separator") {
				separator = a.text("separator")
			}
			return strings.Join(a.texts("parts"), separator), nil
		},
		"sort_lines": func(a arguments) (any, error) {
			all := lines(a.text("text"))
			slices.Sort(all)
			if a.flag("unique", false) {
				all = slices.Compact(all)
			}
			if a.flag("descending", false) {
				slices.Reverse(all)
			}
			return strings.Join(all, "\n"), nil
		},
		"truncate_text": func(a arguments) (any, error) { return truncate(a.text("text"), a.count("max", 80)), nil },
		"encode_base64": func(a arguments) (any, error) {
			if a.flag("url_safe", false) {
				return base64.URLEncoding.EncodeToString([]byte(a.text("text"))), nil
			}
			return base64.StdEncoding.EncodeToString([]byte(a.text("text"))), nil
		},
		"decode_base64": func(a arguments) (any, error) {
			s := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(a.text("data"), "="))
			b, err := base64.RawStdEncoding.DecodeString(s)
			if err != nil || !utf8.Valid(b) {
				return nil, errors.New("data is no base64 of a text")
			}
			return string(b), nil
		},
		"decode_url": func(a arguments) (any, error) { return url.QueryUnescape(a.text("text")) },
		"hash_text":  func(a arguments) (any, error) { return hash(a.text("text"), a.or("algorithm", "sha256")) },
		"format_json": func(a arguments) (any, error) {
			var b bytes.Buffer
			var err error
			if n := a.count("indent", 2); n > 0 {
				err = json.Indent(&b, []byte(a.text("json")), "", strings.Repeat(" ", min(n, 8)))
			} else {
				err = json.Compact(&b, []byte(a.text("json")))
			}
			return b.String(), err
		},
		"compare_texts": func(a arguments) (any, error) {
			left, right := []rune(a.text("left")), []rune(a.text("right"))
			if len(left) > 5000 || len(right) > 5000 {
				return nil, errors.New("texts of over 5000 characters are not compared")
			}
			d, longest := editDistance(left, right), max(len(left), len(right), 1)
			return object{"distance": d, "similarity": 1 - float64(d)/float64(longest)}, nil
		},
		"most_frequent_words": func(a arguments) (any, error) { return frequent(a.text("text"), a.count("limit", 10)), nil },
	}
}

// words splits at everything that is neither letter nor digit.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func reverse(s string) string {
	r := []rune(s)
	slices.Reverse(r)
	return string(r)
}

func trimLines(s string) string {
	all := strings.Split(s, "\n")
	for i, l := range all {
		all[i] = strings.TrimSpace(l)
	}
	return strings.Trim(strings.Join(all, "\n"), "\n")
}

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + strings.ToLower(s[n:])
}

func changeCase(s, to string) (any, error) {
	parts := words(s)
	switch to {
	case "upper":
		return strings.ToUpper(s), nil
	case "lower":
		return strings.ToLower(s), nil
	case "snake":
		return strings.ToLower(strings.Join(parts, "_")), nil
	case "kebab":
		return strings.ToLower(strings.Join(parts, "-")), nil
	case "title", "camel":
		for i, p := range parts {
			parts[i] = capital(p)
		}
		if to == "title" {
			return strings.Join(parts, " "), nil
		}
		if len(parts) > 0 {
			parts[0] = strings.ToLower(parts[0])
		}
		return strings.Join(parts, ""), nil
	}
	return nil, fmt.Errorf("%q is not one of upper, lower, title, snake, kebab, camel", to)
}

func truncate(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	cut := string(r[:max(limit-1, 0)])
	if i := strings.LastIndex(cut, " "); i > 0 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ") + "…"
}

func hash(s, algorithm string) (any, error) {
	b := []byte(s)
	switch algorithm {
	case "sha256":
		return fmt.Sprintf("%x", sha256.Sum256(b)), nil
	case "sha512":
		return fmt.Sprintf("%x", sha512.Sum512(b)), nil
	case "md5":
		return fmt.Sprintf("%x", md5.Sum(b)), nil
	case "crc32":
		return fmt.Sprintf("%08x", crc32.ChecksumIEEE(b)), nil
	}
	return nil, fmt.Errorf("%q is not one of sha256, sha512, md5, crc32", algorithm)
}

// editDistance is Levenshtein's, row by row.
func editDistance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

func frequent(s string, limit int) []object {
	counts := map[string]int{}
	var order []string
	for _, w := range words(strings.ToLower(s)) {
		if counts[w]++; counts[w] == 1 {
			order = append(order, w)
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return counts[order[i]] > counts[order[j]] })
	out := []object{}
	for _, w := range first(order, limit) {
		out = append(out, object{"word": w, "count": counts[w]})
	}
	return out
}
