// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/guest"
)

// kubeadmConfig contains the fields of kubeadm's configuration kinds that determine the role of a node.
type kubeadmConfig struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	// NodeRegistration is in InitConfiguration and JoinConfiguration.
	NodeRegistration nodeRegistration `json:"nodeRegistration"`

	// The following fields are in ClusterConfiguration.
	ClusterName          string `json:"clusterName"`
	KubernetesVersion    string `json:"kubernetesVersion"`
	ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	APIServer            struct {
		CertSANs []string `json:"certSANs"`
	} `json:"apiServer"`

	// The following fields are in JoinConfiguration.
	ControlPlane *struct{} `json:"controlPlane"`
	Discovery    discovery `json:"discovery"`

	// text is the document as written.
	text string
}

type nodeRegistration struct {
	Name             string          `json:"name"`
	Taints           *[]corev1.Taint `json:"taints"`
	KubeletExtraArgs json.RawMessage `json:"kubeletExtraArgs"`
}

type discovery struct {
	BootstrapToken *struct {
		APIServerEndpoint        string   `json:"apiServerEndpoint"`
		Token                    string   `json:"token"`
		CACertHashes             []string `json:"caCertHashes"`
		UnsafeSkipCAVerification bool     `json:"unsafeSkipCAVerification"`
	} `json:"bootstrapToken"`
}

// kubeadmRun is the kubeadm init or kubeadm join command of a guest, with the documents of its configuration file.
type kubeadmRun struct {
	verb string
	docs []kubeadmConfig
	// published contains the guestinfo keys that the script publishes after kubeadm has succeeded.
	published map[string]string
}

var (
	kubeadmCommand = regexp.MustCompile(`(?:\A|[\s;&|/])kubeadm\s+(init|join)\b([^;&|]*)`)
	configFlag     = regexp.MustCompile(`--config[= ]\s*(\S+)`)
	scriptCommand  = regexp.MustCompile(`\A(?:/bin/)?(?:ba)?sh\s+(/\S+)\s*\z`)
	sourceCommand  = regexp.MustCompile(`\A(?:\.|source)\s+(/\S+)\s*\z`)
	sedCommand     = regexp.MustCompile(`\Ased\s+-i\s+"([^"]+)"\s+(/\S+)\s*\z`)
	sedExpression  = regexp.MustCompile(`s\|\\\$([A-Z_]+)\|\$([A-Z_]+)\|`)
	assignment     = regexp.MustCompile(`(?m)^([A-Z_]+)='([^']*)'$`)
	publishCommand = regexp.MustCompile(`vmtoolsd --cmd "info-set (guestinfo\.\S+) ([^"$]+)"`)
)

// findKubeadm returns the kubeadm command of the user data. found reports whether one exists.
func findKubeadm(u *guest.Userdata) (_ kubeadmRun, found bool, _ error) {
	for _, command := range u.Commands {
		command = scriptOf(u, command)
		m := kubeadmCommand.FindStringSubmatch(command)
		if m == nil {
			continue
		}
		flag := configFlag.FindStringSubmatch(m[2])
		if flag == nil {
			return kubeadmRun{}, true, fmt.Errorf("kubeadm %s is started without --config", m[1])
		}
		file, ok := u.File(flag[1])
		if !ok {
			return kubeadmRun{}, true, fmt.Errorf("kubeadm %s: its --config file %s is not written", m[1], flag[1])
		}
		content, err := substituteVariables(u, file)
		if err != nil {
			return kubeadmRun{}, true, fmt.Errorf("kubeadm %s: %w", m[1], err)
		}
		docs, err := parseKubeadm(content)
		if err != nil {
			return kubeadmRun{}, true, fmt.Errorf("kubeadm %s: %s: %w", m[1], file.Path, err)
		}
		return kubeadmRun{verb: m[1], docs: docs, published: publishedBy(command)}, true, nil
	}
	return kubeadmRun{}, false, nil
}

// substituteVariables returns the content of a file after variables are substituted. User data without templates reads
// variables from a file and replaces their names with sed.
func substituteVariables(u *guest.Userdata, file guest.File) (string, error) {
	content := file.Content
	variables := map[string]string{}
	for _, command := range u.Commands {
		if m := sourceCommand.FindStringSubmatch(strings.TrimSpace(command)); m != nil {
			source, found := u.File(m[1])
			if !found {
				return "", fmt.Errorf("%s, which a command reads before, is not written", m[1])
			}
			for _, pair := range assignment.FindAllStringSubmatch(source.Content, -1) {
				variables[pair[1]] = pair[2]
			}
		}
		m := sedCommand.FindStringSubmatch(strings.TrimSpace(command))
		if m == nil || m[2] != file.Path {
			continue
		}
		for _, e := range sedExpression.FindAllStringSubmatch(m[1], -1) {
			content = strings.ReplaceAll(content, "$"+e[1], variables[e[2]])
		}
	}
	return content, nil
}

// scriptOf returns the content of the script that a command runs with a shell, if user data writes it. Otherwise it
// returns the command. CAPVCD starts kubeadm in such a script.
func scriptOf(u *guest.Userdata, command string) string {
	m := scriptCommand.FindStringSubmatch(strings.TrimSpace(command))
	if m == nil {
		return command
	}
	if f, found := u.File(m[1]); found {
		return f.Content
	}
	return command
}

// publishedBy returns the guestinfo keys that a script publishes, each with its last constant value.
func publishedBy(script string) map[string]string {
	published := map[string]string{}
	for _, m := range publishCommand.FindAllStringSubmatch(script, -1) {
		published[m[1]] = m[2]
	}
	return published
}

// parseKubeadm parses a kubeadm configuration file.
func parseKubeadm(content string) ([]kubeadmConfig, error) {
	var docs []kubeadmConfig
	reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(content)))
	for {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading YAML documents: %w", err)
		}
		if strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(text)), "---")) == "" {
			continue
		}
		doc := kubeadmConfig{text: string(text)}
		if err := yaml.Unmarshal(text, &doc); err != nil {
			return nil, errors.New("a document is not a kubeadm configuration")
		}
		if doc.Kind != "KubeletConfiguration" && doc.Kind != "KubeProxyConfiguration" &&
			!slices.Contains([]string{"kubeadm.k8s.io/v1beta3", "kubeadm.k8s.io/v1beta4"}, doc.APIVersion) {
			return nil, fmt.Errorf("%s has apiVersion %q, want kubeadm.k8s.io/v1beta3 or v1beta4", doc.Kind,
				doc.APIVersion)
		}
		docs = append(docs, doc)
	}
}

// doc returns the document of a kind. found reports whether it exists.
func (k kubeadmRun) doc(kind string) (doc kubeadmConfig, found bool) {
	for _, d := range k.docs {
		if d.Kind == kind {
			return d, true
		}
	}
	return kubeadmConfig{}, false
}

// kubeletArgs parses kubeletExtraArgs: a mapping in v1beta3, a list of names and values in v1beta4.
func (c kubeadmConfig) kubeletArgs() (map[string]string, error) {
	args := map[string]string{}
	if len(c.NodeRegistration.KubeletExtraArgs) == 0 {
		return args, nil
	}
	if c.APIVersion == "kubeadm.k8s.io/v1beta3" {
		if err := json.Unmarshal(c.NodeRegistration.KubeletExtraArgs, &args); err != nil {
			return nil, errors.New("nodeRegistration.kubeletExtraArgs is not a mapping, as v1beta3 requires")
		}
		return args, nil
	}
	var list []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	if err := json.Unmarshal(c.NodeRegistration.KubeletExtraArgs, &list); err != nil {
		return nil, errors.New(
			"nodeRegistration.kubeletExtraArgs is not a list of names and values, as v1beta4 requires")
	}
	for _, arg := range list {
		args[arg.Name] = arg.Value
	}
	return args, nil
}
