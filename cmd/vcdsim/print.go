package main

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"text/template"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// A site is what configurations are made of: the first tenant with its first VDC.
type site struct {
	URL, CAFile       string
	AllOrgs           []vcdsim.Org
	Org               vcdsim.Org
	VDC               vcdsim.VDC
	User              vcdsim.User // for clients: the last of the organisation
	Admin             vcdsim.User // its first
	System            vcdsim.User
	Network           string // these are empty if there is none
	Catalog, Template string
	EdgeGateway       string
}

func newSite(m vcdsim.Model, url, caFile string) site {
	s := site{URL: url, CAFile: caFile, AllOrgs: m.Orgs}
	for _, org := range m.Orgs {
		switch {
		case org.Name == "System" && len(org.Users) > 0:
			s.System = org.Users[0]
		case s.Org.Name == "" && len(org.Users) > 0 && len(org.VDCs) > 0:
			s.Org, s.VDC = org, org.VDCs[0]
			s.Admin, s.User = org.Users[0], org.Users[len(org.Users)-1]
		}
	}
	if len(s.VDC.Networks) > 0 {
		s.Network = s.VDC.Networks[0].Name
	}
	if len(s.VDC.EdgeGateways) > 0 {
		s.EdgeGateway = s.VDC.EdgeGateways[0].Name
	}
	for _, c := range s.Org.Catalogs {
		if s.Catalog == "" {
			s.Catalog = c.Name
		}
		if s.Template == "" && len(c.Templates) > 0 {
			s.Catalog, s.Template = c.Name, c.Templates[0].Name
		}
	}
	return s
}

// Base64 is for values that clusterctl takes so.
func (s site) Base64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// Token is the API token of the user, empty if there is none.
func (s site) Token() string {
	if len(s.User.APITokens) == 0 {
		return ""
	}
	return s.User.APITokens[0]
}

// configurations are what other programs read, by name.
func configurations() map[string]string {
	return map[string]string{
		"env": `VCD_SITE={{.URL}}
VCD_CA_FILE={{.CAFile}}
{{- range $org := .AllOrgs}}{{range .Users}}

# {{.FullName}} ({{.Role}})
VCD_ORG={{$org.Name}}
VCD_USERNAME={{.Name}}
VCD_PASSWORD={{.Password}}
{{- range .APITokens}}
VCD_API_TOKEN={{.}}
{{- end}}{{end}}{{end}}
`,
		"capi": `# Variables of this project's cluster templates: source them, then clusterctl generate cluster.
export VCD_SITE={{.URL}}
export VCD_CA_BUNDLE_B64="$(base64 < {{.CAFile}} | tr -d '\n')"
export VCD_ORGANIZATION={{.Org.Name}}
export VCD_ORGANIZATION_VDC={{.VDC.Name}}
export VCD_ORGANIZATION_VDC_NETWORK={{.Network}}
export VCD_CATALOG={{.Catalog}}
export VCD_TEMPLATE_NAME={{.Template}}
{{if .Token}}export VCD_API_TOKEN_B64={{.Base64 .Token}}{{else}}export VCD_USERNAME_B64={{.Base64 .User.Name}}
export VCD_PASSWORD_B64={{.Base64 .User.Password}}{{end}}
`,
		"identity": `# A VCDIdentity with its Secret: kubectl apply -f -
# Add the CA: kubectl create secret generic vcdsim --from-file=ca.crt={{.CAFile}} … or paste it below as ca.crt.
apiVersion: v1
kind: Secret
metadata:
  name: vcdsim
stringData:
{{- if .Token}}
  apiToken: {{.Token}}
{{- else}}
  username: {{.User.Name}}
  password: {{.User.Password}}
{{- end}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta4
kind: VCDIdentity
metadata:
  name: vcdsim
spec:
  site: {{.URL}}
  secretRef:
    name: vcdsim
`,
		"terraform": `# Terraform's provider for VCD
provider "vcd" {
  url                  = "{{.URL}}/api"
  org                  = "{{.Org.Name}}"
  vdc                  = "{{.VDC.Name}}"
  user                 = "{{.Admin.Name}}"
  password             = "{{.Admin.Password}}"
  auth_type            = "integrated"
  allow_unverified_ssl = true # or SSL_CERT_FILE={{.CAFile}}
}
`,
		"govcd": `# Configuration of go-vcloud-director's tests: GOVCD_CONFIG names this file
provider:
  user: {{.System.Name}}
  password: {{.System.Password}}
  url: {{.URL}}/api
  sysOrg: System
  maxRetryTimeout: 60
tenants:
  - user: {{.Admin.Name}}
    password: {{.Admin.Password}}
    sysOrg: {{.Org.Name}}
vcd:
  org: {{.Org.Name}}
  vdc: {{.VDC.Name}}
{{- if .Catalog}}
  catalog:
    name: {{.Catalog}}
{{- if .Template}}
    catalogItem: {{.Template}}
    nsxtCatalogItem: {{.Template}}
{{- end}}{{end}}
{{- if .Network}}
  network:
    network1: {{.Network}}
{{- end}}
{{- with .VDC.StorageProfiles}}
  storageProfile:
    storageProfile1: {{(index . 0).Name}}
{{- if gt (len .) 1}}
    storageProfile2: {{(index . 1).Name}}
{{- end}}{{end}}
  nsxt:
    vdc: {{.VDC.Name}}
{{- if .EdgeGateway}}
    edgeGateway: {{.EdgeGateway}}
{{- end}}
{{- if .Network}}
    routedNetwork: {{.Network}}
{{- end}}
logging:
  enabled: false
`,
	}
}

func show(w io.Writer, configuration string, s site) error {
	t, err := template.New("").Parse(configuration)
	if err != nil {
		return fmt.Errorf("reading a configuration: %w", err)
	}
	if err := t.Execute(w, s); err != nil {
		return fmt.Errorf("printing the configuration: %w", err)
	}
	return nil
}

// describe prints where everything is and the configuration to paste.
func describe(w io.Writer, sim *vcdsim.Simulator, caFile string) error {
	s := newSite(sim.State().Model, sim.URL(), caFile)
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
	_, err := fmt.Fprintf(w, "\n# What happens is shown at %s/_sim/\n", sim.URL())
	return err
}
