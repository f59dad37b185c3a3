// SPDX-License-Identifier: Apache-2.0

package cloudstack

import (
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // CloudStack's signatures are made so.
	"encoding/base64"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// expiry is the validity of a signature. Clocks may differ by about as much.
const expiry = 15 * time.Minute

// sign returns the signature of a request, which covers its parameters, sorted by name and in lower case. CloudStack
// encodes the values as Java does, and does not encode the names.
func sign(form url.Values, secret string) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(form)) {
		pairs = append(pairs, name+"="+javaEncoding.Replace(url.QueryEscape(form.Get(name))))
	}
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(strings.ToLower(strings.Join(pairs, "&"))))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

var javaEncoding = strings.NewReplacer("+", "%20", "%2A", "*", "~", "%7E")
