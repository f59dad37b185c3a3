// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/addons"
)

// A cloud is a cloud that the chart supports.
type cloud struct {
	addons.Cloud

	// values is the key of the cloud in values.yaml, and the name of its templates.
	values string
	// settings renders the ConfigMaps and Secrets of the cloud. Each is omitted if its value is empty.
	settings func() (string, error)
}

func clouds() []cloud {
	return []cloud{
		{addons.VCD(), "vcd", vcdSettings},
		{addons.CloudStack(), "cloudstack", cloudStackSettings},
		{addons.VSphere(), "vsphere", vSphereSettings},
	}
}

// config renders the inputs of the program: the settings of the cloud and the Secret of the proxy.
func (c cloud) config() (string, error) {
	own, err := c.settings()
	if err != nil {
		return "", err
	}
	proxy, err := c.proxy()
	return own + proxy, err
}

// proxyVariables are the entries of the Secret of a proxy. Each is omitted if its value is empty.
const proxyVariables = `{{- with .httpProxy }}
  HTTP_PROXY: {{ . | b64enc }}
{{- end }}
{{- with .httpsProxy }}
  HTTPS_PROXY: {{ . | b64enc }}
{{- end }}
{{- with .noProxy }}
  NO_PROXY: {{ . | join "," | b64enc }}
{{- end }}
`

// proxy renders the Secret of the proxy.
func (c cloud) proxy() (string, error) {
	object, err := c.Proxy(map[string][]byte{textMark: []byte(textMark)})
	if err != nil {
		return "", err
	}
	secret, err := marshal(object)
	if err != nil {
		return "", err
	}
	return settings(setting{".Values.proxy", secret, swap{"  " + textMark + ": " + textMark64 + "\n", proxyVariables}})
}

func vcdSettings() (string, error) {
	configMap, err := addons.ConfigMap([]byte(textMark))
	if err != nil {
		return "", err
	}
	config, err := marshal(configMap)
	if err != nil {
		return "", err
	}
	object, err := addons.ClusterID(textMark)
	if err != nil {
		return "", err
	}
	id, err := marshal(object)
	if err != nil {
		return "", err
	}
	if object, err = addons.Credentials(map[string][]byte{textMark: []byte(textMark)}); err != nil {
		return "", err
	}
	credentials, err := marshal(object)
	if err != nil {
		return "", err
	}
	return settings(
		setting{".Values.vcd.config", config, swap{": " + textMark, ": {{ toYaml . | quote }}"}},
		setting{".Values.vcd.clusterID", id, swap{textMark64, "{{ . | b64enc }}"}},
		setting{".Values.vcd.credentials", credentials, dataOf(textMark)},
	)
}

func cloudStackSettings() (string, error) {
	// This is the file of a stand-alone installation with its content replaced.
	before, _, found := strings.Cut(addons.CloudStackConfig, "    [Global]")
	if !found {
		return "", errors.New("the configuration has no [Global]")
	}
	return settings(setting{
		".Values.cloudstack.config",
		before + "    " + textMark + "\n",
		swap{"    " + textMark + "\n", "{{ . | indent 4 }}\n"},
	})
}

func vSphereSettings() (string, error) {
	config, secret, found := strings.Cut(addons.VSphereConfig, "---\n")
	if !found {
		return "", errors.New("the configuration has no Secret")
	}
	configBefore, _, foundConfig := strings.Cut(config, "    global:")
	secretBefore, _, foundSecret := strings.Cut(secret, "stringData:\n")
	if !foundConfig || !foundSecret {
		return "", errors.New("the configuration has neither global nor stringData")
	}
	return settings(
		setting{
			".Values.vsphere.config",
			configBefore + "    " + textMark + "\n",
			swap{"    " + textMark + "\n", "{{ toYaml . | indent 4 }}\n"},
		},
		setting{
			".Values.vsphere.credentials",
			secretBefore + "data:\n  " + textMark + ": " + textMark64 + "\n",
			dataOf(textMark),
		},
	)
}

// dataOf replaces the only entry in the data of a Secret with all entries of a value.
func dataOf(key string) swap {
	return swap{
		"  " + key + ": " + textMark64 + "\n",
		"{{- range $key, $value := . }}\n  {{ $key }}: {{ $value | b64enc }}\n{{- end }}\n",
	}
}

// A setting is an object that is created from a value, unless the value is empty.
type setting struct {
	value, object string
	swap          swap
}

func settings(all ...setting) (string, error) {
	var out strings.Builder
	for _, s := range all {
		text, err := apply(s.object, s.swap)
		if err != nil {
			return "", err
		}
		_, _ = fmt.Fprintf(&out, "{{- with %s }}\n---\n%s{{- end }}\n", s.value, text)
	}
	return out.String(), nil
}

// imageTemplate is the image reference, with the digest if it is set, otherwise with the tag. The tag defaults to the
// release.
const imageTemplate = `{{- define "image" -}}
{{- with .Values.image -}}
{{ .repository }}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}
`
