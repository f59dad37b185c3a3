// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// redacted replaces redacted values.
const redacted = "REDACTED"

// credentialWords are words in names of credential fields, in any spelling: apiToken, API_TOKEN, api-token.
var credentialWords = []string{
	"password",
	"passwd",
	"passphrase",
	"pwd",
	"token",
	"secret",
	"credential",
	"credentials",
	"bearer",
	"apikey",
	"api key",
	"access key",
	"secret key",
	"private key",
	"client key",
	"htpasswd",
	"dockerconfigjson",
	"dockercfg",
	"cookie",
	"authorization",
	"auth",
	"key data",
}

// references are the last words of fields that refer to a Secret, which are not credentials.
var references = []string{"name", "names", "ref", "refs", "namespace", "type", "kind", "path", "expiration", "duration", "ttl"}

// wordStart matches the start of a word in a camel case name.
var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// isCredential reports whether the field with this name contains a credential.
func isCredential(name string) bool {
	// Only the part after the slash of a qualified name, such as an annotation, counts.
	name = name[strings.LastIndex(name, "/")+1:]
	name = wordStart.ReplaceAllString(name, "$1 $2")
	words := strings.Fields(strings.ToLower(strings.NewReplacer("_", " ", "-", " ", ".", " ").Replace(name)))
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	for _, reference := range references {
		if last == reference {
			return false
		}
	}
	joined := " " + strings.Join(words, " ") + " "
	for _, word := range credentialWords {
		if strings.Contains(joined, " "+word+" ") {
			return true
		}
	}
	// Names without separators, such as SECRETKEY.
	for _, word := range []string{"password", "passwd", "token", "secret"} {
		if strings.HasSuffix(last, word) || strings.HasPrefix(last, word+"key") {
			return true
		}
	}
	return false
}

// redactFields redacts credentials in a decoded JSON object, in place.
func redactFields(value any) any {
	switch value := value.(type) {
	case map[string]any:
		redactMap(value)
	case []any:
		for i := range value {
			value[i] = redactFields(value[i])
		}
	case string:
		return string(redactText([]byte(value)))
	}
	return value
}

func redactMap(fields map[string]any) {
	// An environment variable, header or parameter: {name: X, value: Y}, or an entry of extraConfig: {key: X, value: Y}.
	for _, field := range []string{"name", "key"} {
		if name, ok := fields[field].(string); ok && isCredential(name) {
			if _, ok := fields["value"].(string); ok {
				fields["value"] = redacted
			}
		}
	}
	for name, value := range fields {
		text, isText := value.(string)
		switch {
		case isText && text != "" && isCredential(name):
			fields[name] = redacted
		case isText && strings.HasSuffix(strings.ToLower(name), "proxy"):
			fields[name] = redactUser(string(redactText([]byte(text))))
		default:
			fields[name] = redactFields(value)
		}
	}
}

// redactUser redacts the user and password in an address without a scheme, such as user:password@proxy:3128.
func redactUser(address string) string {
	at := strings.LastIndex(address, "@")
	if at < 0 || strings.Contains(address, "://") {
		return address
	}
	return redacted + address[at:]
}

// confidential matches names of fields in text whose values are redacted.
const confidential = `[\w.-]*(?:password|passwd|passphrase|token|secret|secret_?key|api_?key|access_?key|private_?key|` +
	`credentials?|bearer|htpasswd|dockerconfigjson|cookie)|pwd|auth`

// patterns match text that looks like a credential, for example in logs. Their first group is kept.
var patterns = []*regexp.Regexp{
	// User and password in a URL of any scheme. A password may contain an unescaped slash.
	regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)[^\s"'<>\\]*(?:@)`),
	// A proxy without a scheme.
	regexp.MustCompile(`(?i)(_proxy["']?\s*[:=]\s*["']?)[^\s"'/]*@`),
	regexp.MustCompile(`(?i)((?:authorization|x-vmware-vcloud-access-token|x-vcloud-authorization)["']?\s*[:=]\s*)\S+(?: \S+)?`),
	// A line of YAML with any value.
	regexp.MustCompile(`(?im)^([ \t]*(?:- )?["']?(?:` + confidential + `)["']?:[ \t]+)[^\s{\[].*$`),
	regexp.MustCompile(`(?i)(\b(?:` + confidential + `)\\?["']?[ \t]*[:=][ \t]*)(?:\\?"(?:[^"\\]|\\[^"])*\\?"|'[^']*'|[^\s"',&}{\[]+)`),
	regexp.MustCompile(`()eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`),
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`),
}

// redactText redacts everything that looks like a credential in a text.
func redactText(text []byte) []byte {
	for i, pattern := range patterns {
		replacement := "${1}" + redacted
		if i < addressPatterns {
			replacement += "@"
		}
		text = pattern.ReplaceAll(text, []byte(replacement))
	}
	return text
}

// addressPatterns is the number of patterns that end with the "@" in front of a host. They are the first ones.
const addressPatterns = 2
