{{- /* Types as JSON, from which main.go writes the pages. Each list ends with null. */ -}}
{{- define "gvList" -}}
[{{ range . }}{{ range .SortedTypes }}{{ if markdownShouldRenderType . }}
{"name": {{ .Name | toJson }}, "doc": {{ .Doc | toJson }}, "alias": {{ if .IsAlias }}{{ markdownRenderTypeLink .UnderlyingType | toJson }}{{ else }}""{{ end }}, "root": {{ not (empty .GVK) }}, "markers": {{ .Markers | toJson }},
"fields": [{{ range .Members }}
{"name": {{ .Name | toJson }}, "doc": {{ .Doc | toJson }}, "type": {{ markdownRenderType .Type | toJson }}, "default": {{ .Default | toJson }}, "markers": {{ .Markers | toJson }}},{{ end }} null],
"values": [{{ range .EnumValues }}
{"name": {{ .Name | toJson }}, "doc": {{ .Doc | toJson }}},{{ end }} null]},{{ end }}{{ end }}{{ end }}
null]
{{- end -}}
