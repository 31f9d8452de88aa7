package secret

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// plainWords are values that no credential has and every second log line holds.
var plainWords = regexp.MustCompile(`(?i)^(\d+|true|false|none|null|yes|no|on|off|debug|info|warn|warning|error|production|development|test|stdio|http|https)$`)

// plainVariables hold nothing secret: to hide their values would only make
// paths in messages unreadable.
var plainVariables = map[string]bool{
	"HOME": true, "USER": true, "LOGNAME": true, "PATH": true, "PWD": true, "SHELL": true,
	"LANG": true, "TMPDIR": true, "TEMP": true, "TMP": true, "HOSTNAME": true, "TZ": true,
	"USERNAME": true, "USERPROFILE": true, "APPDATA": true, "LOCALAPPDATA": true, // Windows, in any case
	"XDG_CONFIG_HOME": true, "XDG_DATA_HOME": true, "XDG_CACHE_HOME": true, "XDG_RUNTIME_DIR": true,
}

// Plausible tells whether a configured value may be a credential, so that it
// must not be shown. Variable names the environment variable that holds it, ""
// if none does. Words and numbers that are in every second message are no
// credentials, nor are files and folders of this machine, which messages need.
func Plausible(variable, value string) bool {
	if value == "" || plainVariables[strings.ToUpper(variable)] || plainWords.MatchString(value) {
		return false
	}
	if !filepath.IsAbs(value) {
		return true
	}
	_, err := os.Stat(value)
	return err != nil
}
