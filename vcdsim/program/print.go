// SPDX-License-Identifier: Apache-2.0

package program

import (
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/template"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A site holds the values for the configurations: the first tenant with its first VDC.
type site struct {
	URL, CAFile       string
	CA                string // the content of CAFile
	AllOrgs           []vcdsim.Org
	Org               vcdsim.Org
	VDC               vcdsim.VDC
	User              vcdsim.User // for clients: the second of the organization, or its only one
	CCM               vcdsim.User // for cloud controller managers: the user with their role, or User
	Admin             vcdsim.User // the first user of the organization
	System            vcdsim.User
	Network           string // empty if there is none, as the following fields
	Catalog, Template string
	EdgeGateway       string
	Endpoint          string // an address of the network outside the ranges for VMs
}

func newSite(m vcdsim.Model, url, caFile string) (site, error) {
	ca, err := os.ReadFile(caFile) //nolint:gosec // the caller's own flag
	if err != nil {
		return site{}, fmt.Errorf("reading the authority: %w", err)
	}
	s := site{URL: url, CAFile: caFile, CA: string(ca)}
	s.choose(m)
	return s, nil
}

// choose picks the organization and its objects that configurations refer to.
func (s *site) choose(m vcdsim.Model) {
	s.AllOrgs = m.Orgs
	for _, org := range m.Orgs {
		switch {
		case org.Name == "System" && len(org.Users) > 0:
			s.System = org.Users[0]
		case s.Org.Name == "" && len(org.Users) > 0 && len(org.VDCs) > 0:
			s.Org = org
			s.VDC = org.VDCs[0]
			s.Admin = org.Users[0]
			s.User = org.Users[min(1, len(org.Users)-1)]
			s.CCM = s.User
			if i := slices.IndexFunc(org.Users, servesClusters); i >= 0 {
				s.CCM = org.Users[i]
			}
		}
	}
	if len(s.VDC.Networks) > 0 {
		s.Network = s.VDC.Networks[0].Name
		s.Endpoint = endpoint(&s.VDC.Networks[0])
	}
	if len(s.VDC.EdgeGateways) > 0 {
		s.EdgeGateway = s.VDC.EdgeGateways[0].Name
	}
	s.Catalog, s.Template = image(s.Org.Catalogs)
}

// endpoint returns the last address of a network that is free for a virtual IP: it is in no range, and is not the
// gateway's address. It returns "" if there is none.
func endpoint(n *vcdsim.Network) string {
	const widest = 16 // prefix length of the largest subnet that is searched
	subnet := n.Gateway.Masked()
	ranges := slices.Concat(n.StaticPool, n.DHCPPool)
	free := ""
	if !subnet.Addr().Is4() || subnet.Bits() < widest {
		return ""
	}
	for a := subnet.Addr().Next(); subnet.Contains(a.Next()); a = a.Next() {
		given := slices.ContainsFunc(ranges, func(r vcdsim.Range) bool { return r.Contains(a) })
		if a != n.Gateway.Addr() && !given {
			free = a.String()
		}
	}
	return free
}

func servesClusters(u vcdsim.User) bool { return u.Role == vcdsim.RoleCloudProvider }

// image returns the names of the first template with VMs and of its catalog. Without such a template it returns the
// name of the first catalog.
func image(catalogs []vcdsim.Catalog) (catalog, template string) {
	for _, c := range catalogs {
		if catalog == "" {
			catalog = c.Name
		}
		for _, t := range c.Templates {
			if len(t.VMs) > 0 {
				return c.Name, t.Name
			}
		}
	}
	return catalog, ""
}

// Base64 encodes a value that clusterctl expects in base64.
func (*site) Base64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// Indented indents the lines after the first, for a block in YAML.
func (*site) Indented(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ")
}

// Token returns the first API token of a user, or "" if there is none.
func (*site) Token(u vcdsim.User) string {
	if len(u.APITokens) == 0 {
		return ""
	}
	return u.APITokens[0]
}

// files are the templates of the configurations.
//
//go:embed configurations/*.tmpl
var files embed.FS

// configurations returns the content of the files, by name without the extension.
func configurations() map[string]string {
	all := map[string]string{}
	entries, err := files.ReadDir("configurations")
	for _, entry := range entries {
		var content []byte
		if content, err = files.ReadFile("configurations/" + entry.Name()); err != nil {
			break
		}
		all[strings.TrimSuffix(entry.Name(), ".tmpl")] = string(content)
	}
	if err != nil {
		panic(err) // The files are part of the program.
	}
	return all
}

func show(w io.Writer, configuration string, s site) error {
	t, err := template.New("").Parse(configuration)
	if err != nil {
		return fmt.Errorf("reading a configuration: %w", err)
	}
	if err := t.Execute(w, &s); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return nil
}

// printOne prints the configuration that --print selects.
func printOne(w io.Writer, o *options, cfg vcdsim.Config) error {
	switch o.print {
	case printModel:
		return vcdsim.WriteModel(w, cfg.Model)
	case printAssumptions:
		return vcdsim.WriteAssumptions(w, *cfg.Assumptions)
	}
	s, err := newSite(cfg.Model, "https://"+o.listen, o.caFile)
	if err != nil {
		return err
	}
	return show(w, configurations()[o.print], s)
}

// describe prints the addresses of the simulator and the configuration to paste.
func describe(w io.Writer, sim *vcdsim.Simulator, caFile string) error {
	s, err := newSite(sim.State().Model, sim.URL(), caFile)
	if err != nil {
		return err
	}
	all := configurations()
	if err := show(w, all["env"], s); err != nil {
		return err
	}
	for _, name := range configNames() {
		if name == "env" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s\n", strings.Repeat("-", 80)); err != nil {
			return fmt.Errorf("printing the configuration: %w", err)
		}
		if err := show(w, all[name], s); err != nil {
			return err
		}
	}
	for _, c := range sim.Cells() {
		if c.URL() != sim.URL() {
			fmt.Fprintf(w, "\n# cell %d: %s", c.Status().Number, c.URL())
		}
	}
	_, err = fmt.Fprintf(w, "\n# The web page at %s/_sim/ shows the activity.\n", sim.URL())
	return err
}
