// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/record"
)

// xmlExchanges returns the exchanges whose responses are XML documents of the legacy API.
func xmlExchanges(exchanges []vcdsim.Exchange) []vcdsim.Exchange {
	var out []vcdsim.Exchange
	for _, x := range exchanges {
		if strings.HasPrefix(x.URI, "/api/") && bytes.HasPrefix(x.Response, []byte("<?xml")) &&
			!strings.HasPrefix(x.URI, "/api/versions") {
			out = append(out, x)
		}
	}
	return out
}

// driver is a schema that imports the schemas for users and administrators, and those of VMware's extensions.
const driver = `<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
<xs:import namespace="http://www.vmware.com/vcloud/v1.5" schemaLocation="file://%[1]s/xsd/1.5/schemas/master/master.xsd"/>
<xs:import namespace="http://www.vmware.com/vcloud/extension/v1.5" schemaLocation="file://%[1]s/xsd/1.5/schemas/extension/vmwextensions.xsd"/>
</xs:schema>`

// CheckXML validates XML responses with xmllint against VMware's schemas in the folder groundTruth. It returns the
// violations and the number of validated responses. scratch is a directory for temporary files.
func CheckXML(groundTruth, scratch string, exchanges []vcdsim.Exchange) ([]Violation, int, error) {
	docs := xmlExchanges(exchanges)
	if err := os.WriteFile(filepath.Join(scratch, "driver.xsd"), fmt.Appendf(nil, driver, groundTruth),
		0o600); err != nil {
		return nil, 0, fmt.Errorf("writing the driver schema: %w", err)
	}
	const batch = 200
	var out []Violation
	for from := 0; from < len(docs); from += batch {
		found, err := checkBatch(groundTruth, scratch, docs[from:min(from+batch, len(docs))])
		if err != nil {
			return nil, 0, err
		}
		out = append(out, found...)
	}
	return distinct(out), len(docs), nil
}

// xmllintError matches an error of xmllint: file:line: element …: Schemas validity error : text.
var xmllintError = regexp.MustCompile(`(?m)^.*?(\d+)\.xml:\d+: .*?error : (.*)$`)

var braces = regexp.MustCompile(`\{[^}]*\}`)

func checkBatch(groundTruth, scratch string, docs []vcdsim.Exchange) ([]Violation, error) {
	args := []string{"--nonet", "--noout", "--schema", filepath.Join(scratch, "driver.xsd")}
	for i, x := range docs {
		file := filepath.Join(scratch, fmt.Sprintf("%d.xml", i))
		if err := os.WriteFile(file, record.Published(x.Response), 0o600); err != nil {
			return nil, fmt.Errorf("writing a document: %w", err)
		}
		args = append(args, file)
	}
	cmd := exec.Command("xmllint", args...) //nolint:gosec,noctx // files of our own
	cmd.Env = append(os.Environ(), "XML_CATALOG_FILES="+filepath.Join(groundTruth, "catalog.xml"))
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("running xmllint: %w", err)
	}
	var out []Violation
	for _, m := range xmllintError.FindAllSubmatch(text, -1) {
		var i int
		if _, err := fmt.Sscan(string(m[1]), &i); err != nil || i >= len(docs) {
			return nil, fmt.Errorf("parsing the output of xmllint: %s", m[0])
		}
		what := braces.ReplaceAllString(string(m[2]), "")
		v := Violation{
			Operation: docs[i].Operation,
			Status:    docs[i].Status,
			Where:     "document",
			What:      what,
			Body:      excerpt(docs[i].Response),
		}
		if !tolerated(v) {
			out = append(out, v)
		}
	}
	if err != nil && len(out) == 0 && !xmllintError.Match(text) {
		return nil, fmt.Errorf("running xmllint: %s", text)
	}
	return out, nil
}

// An Order contains, by parent element, the pairs of child elements that follow each other in recorded responses.
type Order map[string]map[[2]string]bool

// ReadOrder reads the order of elements from the recorded responses in a folder.
func ReadOrder(dir string) (Order, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil {
		return nil, fmt.Errorf("listing recordings: %w", err)
	}
	o := Order{}
	for _, f := range files {
		data, err := os.ReadFile(f) //nolint:gosec // from the folder that was asked for
		if err != nil {
			return nil, fmt.Errorf("reading a recording: %w", err)
		}
		eachPair(data, func(parent, before, after string) {
			if o[parent] == nil {
				o[parent] = map[[2]string]bool{}
			}
			o[parent][[2]string{before, after}] = true
		})
	}
	return o, nil
}

// Check compares the order of elements in XML responses with the recorded order.
func (o Order) Check(exchanges []vcdsim.Exchange) []Violation {
	var out []Violation
	for _, x := range xmlExchanges(exchanges) {
		eachPair(x.Response, func(parent, before, after string) {
			known := o[parent]
			if known[[2]string{after, before}] && !known[[2]string{before, after}] {
				out = append(out, Violation{
					Operation: x.Operation,
					Status:    x.Status,
					Where:     "order",
					What:      fmt.Sprintf("in %s, %s precedes %s; in recordings, it follows", parent, before, after),
					Body:      excerpt(x.Response),
				})
			}
		})
	}
	return distinct(out)
}

// eachPair calls f for each pair of children of an element with different names, for all elements in document order.
func eachPair(doc []byte, f func(parent, before, after string)) {
	type level struct {
		name     string
		children []string
	}
	stack := []*level{{}}
	dec := xml.NewDecoder(bytes.NewReader(doc))
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) || err != nil {
			return // The schema validation reports invalid documents.
		}
		top := stack[len(stack)-1]
		switch t := tok.(type) {
		case xml.StartElement:
			for _, before := range top.children {
				if before != t.Name.Local {
					f(top.name, before, t.Name.Local)
				}
			}
			if n := len(top.children); n == 0 || top.children[n-1] != t.Name.Local {
				top.children = append(top.children, t.Name.Local)
			}
			stack = append(stack, &level{name: t.Name.Local})
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
}
